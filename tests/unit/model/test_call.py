"""When an attempt at a remote step is overdue, judged by what its row says."""

import pytest

from durable.model.call import QUEUED_LOOK, SLACK, CallOrder, Overdue, first_look, judge, order_from
from durable.model.lane import LaneClaim, LaneSpec
from durable.model.task import TaskRow

ORDER = CallOrder(name="print", queue="labels", input="{}", key="k", timeout=300.0, pickup=3600.0)
WATCHED = CallOrder(name="print", queue="labels", input="{}", key="k", timeout=300.0, heartbeat=30.0, pickup=3600.0)
OPENED = 1_000_000.0


def row(*, picked_up: float | None = None, beat: float | None = None, closed: str | None = None) -> TaskRow:
    """Times are seconds after the attempt was opened."""
    return TaskRow(
        run_id="r", id="print:1:1", worker="w", closed=closed,
        picked_up_at=None if picked_up is None else OPENED + picked_up,
        heartbeat_at=None if beat is None else OPENED + beat,
    )  # fmt: skip


def judged(order: CallOrder, known: TaskRow | None, after: float, *, queued: bool = False) -> float | str:
    """Seconds after the opening at which to look again, or why it is overdue."""
    found = judge(order, OPENED, known, OPENED + after, queued=queued)
    return found.why if isinstance(found, Overdue) else found - OPENED


def test_nothing_can_be_overdue_before_the_shortest_of_its_times() -> None:
    assert first_look(ORDER, OPENED) - OPENED == 300 + SLACK
    assert first_look(WATCHED, OPENED) - OPENED == 30 + SLACK


@pytest.mark.parametrize(
    ("order", "known", "after", "says"),
    [
        (ORDER, row(picked_up=10, beat=10), 305, 310 + SLACK),
        (ORDER, row(picked_up=10, beat=200), 310 + SLACK, "no result within 300 s of its pickup by w"),
        (WATCHED, row(picked_up=10, beat=40), 50, 70 + SLACK),
        (WATCHED, row(picked_up=10, beat=40), 75, "no heartbeat within 30 s; its worker was w"),
        (WATCHED, row(picked_up=10, beat=309), 311, 310 + SLACK),
        (ORDER, None, 305, 305 + 300 + SLACK),
        (WATCHED, None, 35, 35 + QUEUED_LOOK + SLACK),
        (WATCHED, None, 3000, 3000 + 300 + SLACK),
        (ORDER, None, 3500, 3600 + SLACK),
        (ORDER, None, 3605, 'no worker of queue "labels" has begun with it within 3600 s'),
        (ORDER, row(beat=3000), 3605, 3605 + 360.5 + SLACK),
        (ORDER, row(picked_up=10, beat=10, closed="cancelled"), 20, "the attempt was closed: cancelled"),
    ],
)
def test_what_its_row_says(order: CallOrder, known: TaskRow | None, after: float, says: float | str) -> None:
    assert judged(order, known, after) == (says if isinstance(says, str) else pytest.approx(says))


def test_none_of_its_times_run_while_it_waits_for_its_turn() -> None:
    assert judged(ORDER, None, 100_000, queued=True) == pytest.approx(110_000 + SLACK)


def test_an_order_is_read_as_it_was_written() -> None:
    lane = LaneClaim(spec=LaneSpec(name="queue:labels", limit=3), priority=2, fairness_key="c-1")
    order = CallOrder(name="n", queue="q", input='{"args":[1]}', key="k", timeout=1.5, total=7.0, lane=lane)
    assert order_from(order.to_text()) == order
