import pytest

from durable.errors import InvalidInput
from tests.unit.client.worlds import Order, fulfil, nightly


@pytest.fixture
def six_runs(world):
    """f0 n1 f2 n3 f4 n5, a second apart."""
    for number in range(6):
        if number % 2:
            world.client.start(nightly, id=f"n{number}")
        else:
            world.client.start(fulfil, Order(id="o"), id=f"f{number}")
        world.clock.advance(1)
    return world


def ids(page) -> list[str]:
    return [run.id for run in page.runs]


def test_runs_of_a_workflow_are_listed_newest_first(six_runs) -> None:
    assert ids(six_runs.client.list(fulfil)) == ["f4", "f2", "f0"]
    assert ids(six_runs.client.list("nightly")) == ["n5", "n3", "n1"]


def test_runs_of_all_workflows_are_listed_newest_first(six_runs) -> None:
    assert ids(six_runs.client.list()) == ["n5", "f4", "n3", "f2", "n1", "f0"]


@pytest.mark.parametrize("workflow", [None, "fulfil"])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 6, 7])
def test_pages_follow_one_another_without_gaps_or_repetitions(six_runs, workflow, limit) -> None:
    whole = ids(six_runs.client.list(workflow))
    listed: list[str] = []
    cursor = None
    for _ in range(10):
        page = six_runs.client.list(workflow, limit=limit, cursor=cursor)
        assert len(page.runs) <= limit
        listed += ids(page)
        cursor = page.cursor
        if cursor is None:
            break
    assert listed == whole


def test_runs_are_listed_by_status(six_runs) -> None:
    six_runs.take_turn("f4", status="completed", output='{"order_id":"o"}')
    six_runs.take_turn("n5", status="failed")
    six_runs.take_turn("f2")
    six_runs.take_turn("n3", status="blocked")
    client = six_runs.client
    assert ids(client.list(status="completed")) == ["f4"]
    assert ids(client.list(status="open")) == ["n3", "f2", "n1", "f0"]
    assert ids(client.list(status="suspended")) == ["f2"]
    assert ids(client.list(fulfil, status="pending")) == ["f0"]
    assert ids(client.list(status="failed")) == ["n5"]
    assert ids(client.list(status="blocked")) == ["n3"]
    assert ids(client.list(nightly, status="blocked")) == ["n3"]
    assert ids(client.list(fulfil, status="blocked")) == []


def test_runs_are_counted(six_runs) -> None:
    six_runs.take_turn("f4", status="completed")
    assert six_runs.client.count() == 6
    assert six_runs.client.count(fulfil) == 3
    assert six_runs.client.count(fulfil, status="open") == 2
    assert six_runs.client.count(status="completed") == 1


@pytest.mark.parametrize("cursor", ["nonsense", "!!!", "bnVsbA==", "WzFd"])
def test_a_cursor_that_no_listing_gave_is_refused(world, cursor) -> None:
    with pytest.raises(InvalidInput, match="the cursor"):
        world.client.list(cursor=cursor)


def test_a_page_holds_at_least_one_run(world) -> None:
    with pytest.raises(ValueError, match="limit must be 1 or more"):
        world.client.list(limit=0)
