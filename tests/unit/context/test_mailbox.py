"""What the mailbox's operations make of their arguments."""

import pytest
from pydantic import BaseModel

from durable.channels import Signal
from durable.errors import InvalidInput, InvalidName
from durable.model.message import StoredMessage
from tests.unit.context.running import STARTED, operation_of, outcome_of


class Approve(BaseModel):
    by: str


APPROVE = Signal("approve", Approve)
REJECT = Signal("reject", str)


def message(name: str, id: str = "m1") -> StoredMessage:
    return StoredMessage(id=id, name=name, body="{}", arrived_at=STARTED.timestamp())


@pytest.mark.parametrize(
    "waits",
    [
        lambda ctx: ctx.mailbox.next(APPROVE),
        lambda ctx: ctx.mailbox.next("approve", Approve),
        lambda ctx: ctx.wait_for_signal(APPROVE),
        lambda ctx: ctx.wait_for_signal("approve", Approve),
        lambda ctx: ctx.mailbox.next_batch(APPROVE, count=5, timeout=None),
    ],
)
def test_a_wait_takes_its_signals_name(waits) -> None:
    operation = operation_of(waits)
    assert (operation.location, operation.channels, operation.deadline) == ("approve", ("signal:approve",), None)
    assert operation.claim([message("reject"), message("approve", "m2")])[0].id == "m2"


def test_a_timeout_becomes_a_deadline() -> None:
    operation = operation_of(lambda ctx: ctx.mailbox.next(APPROVE, timeout="1h"))
    assert operation.deadline == STARTED.timestamp() + 3600


def test_several_signals_may_be_waited_for_or_all() -> None:
    both = operation_of(lambda ctx: ctx.mailbox.next_any(APPROVE, REJECT))
    assert both.channels == ("signal:approve", "signal:reject")
    every = operation_of(lambda ctx: ctx.mailbox.next_any())
    assert every.channels == ("*",)
    assert every.claim([message("whatever")])


def test_a_batch_takes_up_to_its_size_and_polls_by_default() -> None:
    operation = operation_of(lambda ctx: ctx.mailbox.next_batch(APPROVE, count=2))
    assert operation.immediate
    assert len(operation.claim([message("approve", f"m{n}") for n in range(3)])) == 2


def test_a_send_carries_the_encoded_body() -> None:
    operation = operation_of(lambda ctx: ctx.mailbox.send("other", APPROVE, Approve(by="me"), delay="1m"))
    assert (operation.run_id, operation.signal, operation.body, operation.delay) == (
        "other",
        "approve",
        '{"by":"me"}',
        60,
    )
    plain = operation_of(lambda ctx: ctx.mailbox.send("other", "approve", {"by": "me"}))
    assert plain.body == '{"by":"me"}'


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (
            lambda ctx: ctx.mailbox.next("approve"),
            TypeError,
            r'lacks the type .*ctx.mailbox.next\("approve", Approve\)',
        ),
        (lambda ctx: ctx.updates.next("rename"), TypeError, r'lacks the type .*: .*ctx.updates.next\("rename", str\)'),
        (lambda ctx: ctx.mailbox.next(3), TypeError, "takes a Signal, or a name and a type"),
        (lambda ctx: ctx.wait_for_signal("x", 3), TypeError, "takes a type, not 3"),
        (lambda ctx: ctx.mailbox.next(APPROVE, default=None), ValueError, "add timeout="),
        (lambda ctx: ctx.mailbox.next(APPROVE, timeout="10"), ValueError, "no unit"),
        (lambda ctx: ctx.mailbox.next(APPROVE, timeout=-1), ValueError, "at least 0 s"),
        (lambda ctx: ctx.mailbox.next_batch(APPROVE, count=0), ValueError, "1 or more, not 0"),
        (lambda ctx: ctx.mailbox.next_batch(APPROVE, count=2000), ValueError, "at most 1000"),
        (
            lambda ctx: ctx.mailbox.send("r", APPROVE, {"to": 1}),
            InvalidInput,
            'body of message "approve": by: Field required',
        ),
        (lambda ctx: ctx.mailbox.send("a b", APPROVE, Approve(by="x")), InvalidName, "run id"),
        (lambda ctx: ctx.mailbox.send("r", "", 3), InvalidName, "signal name"),
        (lambda ctx: ctx.mailbox.send("r", APPROVE, Approve(by="x"), delay="1h"), ValueError, "at most 15 minutes"),
    ],
)
def test_wrong_arguments_are_refused_where_they_are_written(wrong, error, says) -> None:
    with pytest.raises(error, match=says):
        outcome_of(wrong)
