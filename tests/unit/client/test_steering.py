"""Messages, endings and what a caller sees of a run."""

import pytest
from pydantic import BaseModel

from durable.channels import Signal
from durable.errors import (
    ErrorInfo,
    InvalidInput,
    InvalidName,
    LimitExceeded,
    NotAvailable,
    RunBlocked,
    RunCancelled,
    RunDead,
    RunEnded,
    RunFailed,
    RunNotFound,
    RunTimedOut,
    RunWasCancelled,
    StoreUnavailable,
    UndecodableHistory,
)
from durable.model.entry import Entry
from durable.model.envelope import Deliver, Wake
from tests.unit.client.worlds import Order, Receipt, fulfil, nightly


class Approve(BaseModel):
    by: str


APPROVE = Signal("approve", Approve)
DECLINED = ErrorInfo(type="CardDeclined", module="shop", message="no")


@pytest.fixture
def handle(world):
    return world.client.start(fulfil, Order(id="o1"), id="r1")


# Messages


def test_a_message_is_one_envelope(world, handle) -> None:
    message_id = handle.send(APPROVE, Approve(by="me"))
    assert world.client.send("r1", "approve", {"by": "you"}, id="m1") == "m1"
    assert world.sent[1:] == [
        Deliver(run_id="r1", id=message_id, name="approve", body='{"by":"me"}'),
        Deliver(run_id="r1", id="m1", name="approve", body='{"by":"you"}'),
    ]


@pytest.mark.parametrize(
    ("send", "error", "says"),
    [
        (lambda c: c.send("r2", APPROVE, Approve(by="x")), RunNotFound, 'no run "r2"'),
        (lambda c: c.send("r1", APPROVE, {"to": "x"}), InvalidInput, 'body of message "approve": by: Field required'),
        (lambda c: c.send("r1", "approve", "x" * 300_000), LimitExceeded, 'message "approve" is 300,002 bytes'),
        (lambda c: c.send("r1", "a\nb", 1), InvalidName, "signal name"),
        (lambda c: c.send("r1", "approve", 1, id="m 1"), InvalidName, "message id"),
        (lambda c: c.send("r 1", "approve", 1), InvalidName, "run id"),
    ],
)
@pytest.mark.usefixtures("handle")
def test_a_refused_message_is_not_sent(world, send, error, says) -> None:
    with pytest.raises(error, match=says):
        send(world.client)
    assert len(world.sent) == 1


def test_an_ended_run_takes_no_message(world, handle) -> None:
    world.take_turn("r1", status="failed", error=DECLINED)
    with pytest.raises(RunEnded, match="failed") as caught:
        handle.send(APPROVE, Approve(by="me"))
    assert caught.value.status == "failed"
    assert len(world.sent) == 1


def test_a_message_that_was_not_accepted_raises(world, handle) -> None:
    world.runs.failures = 1
    with pytest.raises(StoreUnavailable):
        handle.send(APPROVE, Approve(by="me"))


# Results


def test_an_output_of_another_type_is_named(world, handle) -> None:
    world.take_turn("r1", status="completed", output=None)
    with pytest.raises(UndecodableHistory, match='output of run "r1"'):
        handle.result()


@pytest.mark.parametrize("stored_apart", [True, False])
def test_the_output_is_found_where_the_last_turn_put_it(world, handle, stored_apart) -> None:
    text = '{"order_id":"o1"}'
    world.take_turn("r1")
    world.clock.advance(1)
    if stored_apart:
        world.take_turn("r1", status="completed", payload=text)
    else:
        world.take_turn("r1", status="completed", output=text)
    assert handle.result() == Receipt(order_id="o1")
    assert world.client.result("r1") == Receipt(order_id="o1")
    assert handle.status() == "completed"


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        ("failed", RunFailed, 'run "r1" failed: CardDeclined: no'),
        ("cancelled", RunWasCancelled, 'run "r1" was cancelled: by ann'),
        ("cancelled", RunCancelled, "was cancelled"),
        ("timed_out", RunTimedOut, 'run "r1" timed out: by ann'),
        ("dead", RunDead, 'run "r1" is dead: CardDeclined: no'),
        ("blocked", RunBlocked, 'run "r1" is blocked: CardDeclined: no'),
    ],
)
def test_every_other_ending_is_an_error_with_the_run_id(world, handle, status, error, says) -> None:
    world.take_turn("r1", status=status, error=DECLINED, reason="by ann")
    with pytest.raises(error, match=says) as caught:
        handle.result()
    assert caught.value.run_id == "r1"
    assert caught.value.error == DECLINED


def test_a_blocked_run_is_reported_with_its_whole_reason(world, handle) -> None:
    reason = "the code no longer matches: " + "x" * 300 + ". Deploy the code as it was."
    cut = ErrorInfo(type="Diverged", module="durable.errors", message=reason[:299] + "…")
    world.take_turn("r1", status="blocked", error=cut, reason=reason)
    with pytest.raises(RunBlocked, match=r'run "r1" is blocked: Diverged: the code .*x\. Deploy the code as it was\.$'):
        handle.result()


def test_a_caller_that_waits_looks_ever_more_rarely(world, handle) -> None:
    looks: list[float] = []
    sleep = world.clock.sleep

    def counted(seconds: float) -> None:
        looks.append(seconds)
        sleep(seconds)
        if len(looks) == 20:
            world.take_turn("r1", status="completed", output='{"order_id":"o1"}')

    world.clock.sleep = counted
    assert handle.result().order_id == "o1"
    assert looks[:3] == pytest.approx([0.05, 0.08, 0.128])
    assert looks == sorted(looks)
    assert looks[-1] == 3


def test_a_caller_may_give_up_waiting(world, handle) -> None:
    world.take_turn("r1", reason='signal "approve"')
    before = world.clock.now()
    with pytest.raises(TimeoutError, match='not ended within 10 s: it is suspended, waiting for signal "approve"'):
        handle.result(timeout="10s")
    assert world.clock.now() - before == pytest.approx(10)
    with pytest.raises(TimeoutError, match="within 0 s"):
        handle.result(timeout=0)


@pytest.mark.parametrize(
    "look",
    [
        lambda c: c.get("r2"),
        lambda c: c.result("r2"),
        lambda c: c.handle(nightly, "r2").status(),
        lambda c: c.history("r2"),
        lambda c: c.terminate("r2"),
        lambda c: c.resume("r2"),
    ],
)
def test_a_run_that_does_not_exist_is_not_found(world, look) -> None:
    with pytest.raises(RunNotFound, match='there is no run "r2"'):
        look(world.client)


def test_a_handle_may_be_made_by_name(world, handle) -> None:
    assert world.client.handle("fulfil", "r1").workflow is fulfil
    assert repr(handle) == '<run "r1">'


# History


def entry(location: str, n: int, at: float = 0.0) -> Entry:
    return Entry(location=location, kind="step", epoch=0, n=n, at=at)


def test_the_history_is_in_order_of_record_over_all_pages(world, handle) -> None:
    world.take_turn("r1", [entry("z", 1), entry("b", 2), entry("y", 3)])
    world.clock.advance(1)
    world.take_turn("r1", [entry("a", 1), entry("x", 2)])
    assert [e.location for e in world.client.history(handle.id)] == ["z", "b", "y", "a", "x"]


def test_what_a_fenced_epoch_wrote_is_no_history(world, handle) -> None:
    epoch = world.take_turn("r1", [entry("a", 1), entry("b", 2)])
    world.store.record_fences("r1", epoch=epoch, fences={epoch: 1})
    assert [e.location for e in world.client.history(handle.id)] == ["a"]


# Ending and mending


def test_a_terminated_run_has_ended(world, handle) -> None:
    world.client.cancel("r1", "terminate", reason="by ann")
    run = world.client.get("r1")
    assert (run.status, run.reason, run.outbox) == ("cancelled", "by ann", "terminate")
    handle.cancel("terminate")
    assert world.client.get("r1").reason == "by ann"


@pytest.mark.parametrize("mode", ["graceful", "compensate"])
def test_gentler_cancels_are_requested_and_the_run_is_woken(world, handle, mode) -> None:
    handle.cancel(mode)
    run = world.client.get("r1")
    assert (run.status, run.cancel_requested, run.due_at) == ("pending", mode, world.clock.now())
    assert isinstance(world.sent[-1], Wake)


def test_a_cancel_of_no_known_mode_is_refused(world, handle) -> None:
    with pytest.raises(ValueError, match='is not one of "graceful"'):
        handle.cancel("kindly")
    assert world.client.get("r1").cancel_requested is None


def test_a_blocked_run_is_resumed_by_a_wake(world, handle) -> None:
    world.take_turn("r1", status="blocked", reason="diverged")
    world.client.resume(handle.id)
    run = world.client.get("r1")
    assert (run.status, run.due_at) == ("suspended", world.clock.now())
    assert isinstance(world.sent[-1], Wake)


def test_an_ended_run_is_not_resumed(world, handle) -> None:
    world.take_turn("r1", status="dead")
    with pytest.raises(RunEnded):
        world.client.resume(handle.id)


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.pause("r1"),
        lambda c: c.unpause("r1"),
        lambda c: c.rerun_from("r1", "a"),
        lambda c: c.fork("r1", "a"),
    ],
)
def test_what_is_missing_says_so(world, call) -> None:
    with pytest.raises(NotAvailable, match=r"client\."):
        call(world.client)
