"""Scenes of what surrounds a run: listings, publications, tasks, lanes, events; and of the ports beside the store."""

from dataclasses import replace
from typing import Any

from durable.model import lane_changes as lanes
from durable.model.envelope import Start, TimerFired, Wake
from durable.model.lane import Lane, LaneSpec, Ticket
from durable.model.limits import SQS_DELAY_SECONDS
from durable.model.subscription import Awaited, BufferedEvent, Subscription
from durable.model.task import StepTask, input_text
from durable.ports import Store
from tests.adapters.scenes import SCENES, Act, scene
from tests.contract.builders import HOUR, NOW, created, owned, settle

EVENT = BufferedEvent(event="paid", id="e-1", body='{"n": 1}', at=NOW, until=NOW + HOUR)
WAITING = Subscription(awaited=Awaited(event="paid"), run_id="run-1", location="wait", since=NOW)
TASK = StepTask(
    run_id="run-1", location="print", epoch=5, attempt=1, queue="default", name="print", input=input_text([], {}),
    dispatched_at=1.5, timeout=60.0, heartbeat=None, idempotency_key="key",
)  # fmt: skip
LANE = LaneSpec(name="queue:labels", limit=1, max_queue=9)


def always(name: str, act: Act) -> None:
    """A call that needs nothing to be there."""
    SCENES[name] = lambda _: act


# Listings


@scene("store.list_runs")
def _(store: Store) -> Act:
    for n in range(3):
        created(store, f"run-{n}", tags=("red",) if n else ())
    return lambda faulty: faulty.list_runs("fulfil", tag="red", limit=9)


@scene("store.due_runs")
def _(store: Store) -> Act:
    for n in range(3):
        created(store, f"run-{n}", due_at=NOW + n)
    return lambda faulty: faulty.due_runs(before=NOW + 1, limit=9)


@scene("store.runs_needing_attention")
def _(store: Store) -> Act:
    created(store)
    settle(store, owned(store), "dead")
    return lambda faulty: faulty.runs_needing_attention("dead", limit=9)


@scene("store.blocked_runs")
def _(store: Store) -> Act:
    created(store)
    settle(store, owned(store), "blocked", code_version="v1")
    return lambda faulty: faulty.blocked_runs(not_under="v2", limit=9)


# Publications

always("store.put_state", lambda store: store.put_state("run-1", "place", '"here"', epoch=3))
always("store.append_stream", lambda store: store.append_stream("run-1", "tokens", "01", "text"))


@scene("store.get_state")
def _(store: Store) -> Act:
    store.put_state("run-1", "place", '"here"', epoch=3)
    return lambda faulty: faulty.get_state("run-1", "place")


@scene("store.states")
def _(store: Store) -> Act:
    for key in "abc":
        store.put_state("run-1", key, f'"{key}"', epoch=3)
    return lambda faulty: faulty.states("run-1")


@scene("store.read_stream")
def _(store: Store) -> Act:
    for n in range(5):
        store.append_stream("run-1", "tokens", f"0{n}", "text")
    return lambda faulty: faulty.read_stream("run-1", "tokens", after="01", limit=2)


# Tasks


def start(store: Any, **changes: Any) -> Any:
    return store.start_task("run-1", "print:5:1", **{"worker": "w", "now": NOW, "expires_at": NOW + HOUR, **changes})


always("store.start_task", start)
always("store.beat_task", lambda store: store.beat_task("run-1", "print:5:1", now=NOW + 1, progress="1"))
always(
    "store.close_task",
    lambda store: store.close_task("run-1", "print:5:1", reason="cancelled", expires_at=NOW + HOUR),
)


@scene("store.start_task, once more")
def _(store: Store) -> Act:
    start(store, worker="another", now=NOW - 9)
    return start


@scene("store.get_task")
def _(store: Store) -> Act:
    start(store)
    return lambda faulty: faulty.get_task("run-1", "print:5:1")


# Lanes


def entered(lane: Lane, holder: str) -> tuple[Lane, list[Ticket]]:
    answer = lanes.enter(lane, Ticket(holder=holder, action='{"start": "x"}', arrived_at=NOW), NOW)
    assert isinstance(answer, lanes.Entered)
    return lanes.stamped(answer.lane, NOW, f"writer of {holder}"), [] if answer.ticket is None else [answer.ticket]


def busy(store: Store) -> tuple[Lane, list[Ticket]]:
    """One has the slot and another waits."""
    first, _ = entered(lanes.new_lane(LANE, NOW), "run-1")
    assert store.write_lane(first, expected_version=None)
    second, put = entered(first, "run-2")
    assert store.write_lane(second, expected_version=first.version, put=put)
    return second, put


@scene("store.read_lane")
def _(store: Store) -> Act:
    busy(store)
    return lambda faulty: faulty.read_lane(LANE.name, tickets=5)


@scene("store.find_ticket")
def _(store: Store) -> Act:
    busy(store)
    return lambda faulty: faulty.find_ticket(LANE.name, "run-2")


@scene("store.write_lane, of a new one")
def _(store: Store) -> Act:
    lane, _ = entered(lanes.new_lane(LANE, NOW), "run-1")
    return lambda faulty: faulty.write_lane(lane, expected_version=None)


@scene("store.write_lane")
def _(store: Store) -> Act:
    lane, put = busy(store)
    more, third = entered(lane, "run-3")
    return lambda faulty: faulty.write_lane(more, expected_version=lane.version, put=third, remove=put)


@scene("store.write_lane, of one to be forgotten")
def _(store: Store) -> Act:
    first, _ = entered(lanes.new_lane(LANE, NOW), "run-1")
    assert store.write_lane(first, expected_version=None)
    empty = lanes.stamped(lanes.leave(first, "run-1"), NOW, "leaves")
    return lambda faulty: faulty.write_lane(empty, expected_version=first.version)


@scene("store.write_lane, of one to be forgotten with its tickets")
def _(store: Store) -> Act:
    lane, put = busy(store)
    empty = lanes.stamped(replace(lane, holders={}, waiting=0), NOW, "leaves")
    return lambda faulty: faulty.write_lane(empty, expected_version=lane.version, remove=put)


@scene("store.due_lanes")
def _(store: Store) -> Act:
    busy(store)
    return lambda faulty: faulty.due_lanes(before=NOW + 9 * HOUR, limit=9)


# Events

always("store.put_subscription", lambda store: store.put_subscription(WAITING))
always("store.put_buffered", lambda store: store.put_buffered(EVENT))
always(
    "store.take_event",
    lambda store: store.take_event("paid", "e-1", "run-1", "wait", at=NOW, expires_at=NOW + HOUR),
)


@scene("store.delete_subscription")
def _(store: Store) -> Act:
    store.put_subscription(WAITING)
    return lambda faulty: faulty.delete_subscription("paid", "run-1", "wait")


@scene("store.subscriptions")
def _(store: Store) -> Act:
    store.put_subscription(WAITING)
    return lambda faulty: faulty.subscriptions("paid")


@scene("store.close_buffered")
def _(store: Store) -> Act:
    store.put_buffered(EVENT)
    return lambda faulty: faulty.close_buffered(EVENT)


@scene("store.buffered")
def _(store: Store) -> Act:
    store.put_buffered(EVENT)
    return lambda faulty: faulty.buffered("paid", now=NOW)


# Queues, timers, blobs, the secret

always("runs.send", lambda runs: runs.send(Start(run_id="run-1", id="s-1")))
always("steps.send", lambda steps: steps.send(TASK))
always("steps.send, later", lambda steps: steps.send(TASK, delay=30))
always("timers.arm", lambda timers: timers.arm("run-1", NOW - 1))
always("timers.arm, for soon", lambda timers: timers.arm("run-1", NOW + SQS_DELAY_SECONDS / 2))
always("timers.arm, for later", lambda timers: timers.arm("run-1", NOW + 9 * HOUR))
always("timers.send", lambda timers: timers.send(Wake(run_id="run-1", id="w-1", reason="due")))
always("timers.send, later", lambda timers: timers.send(TimerFired(run_id="run-1", due_at=NOW, id="t-1"), delay=30))
always("blobs.put", lambda blobs: blobs.put("run-1/a", b"bytes"))
always("signing.keys", lambda signing: signing.keys())


@scene("blobs.get")
def _(blobs: Any) -> Act:
    blobs.put("run-1/a", b"bytes")
    return lambda faulty: faulty.get("run-1/a")


@scene("blobs.delete")
def _(blobs: Any) -> Act:
    for key in ("run-1/a", "run-1/b", "run-2/a"):
        blobs.put(key, b"bytes")
    return lambda faulty: faulty.delete("run-1/")


@scene("source.receive")
def _(source: Any) -> Act:
    source.sent(TASK)
    return lambda faulty: faulty.receive(wait=0, hidden=0)


@scene("source.receive, of nothing")
def _(source: Any) -> Act:
    return lambda faulty: faulty.receive(wait=0, hidden=0)


@scene("source.acknowledge")
def _(source: Any) -> Act:
    source.sent(TASK)
    (delivery,) = source.receive(wait=0, hidden=60)
    return lambda faulty: faulty.acknowledge(delivery.id)


@scene("source.hide")
def _(source: Any) -> Act:
    source.sent(TASK)
    (delivery,) = source.receive(wait=0, hidden=60)
    return lambda faulty: faulty.hide(delivery.id, 0)
