"""What a turn leaves in the run record, and the timer that will bring the next one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, assert_never

from pydantic import TypeAdapter

from durable import codec, failures
from durable.engine.opening import begun, python_minor
from durable.engine.stopping import remainder
from durable.errors import ErrorInfo, LimitExceeded, Misuse, NotStorable
from durable.execution import Raised, Returned
from durable.journal import name_waits
from durable.model.limits import INLINE_BYTES
from durable.model.run import RETRIED, Settlement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.app import App
    from durable.engine.stopping import Ending
    from durable.execution import Execution
    from durable.model.run import Run, Status, Wait
    from durable.ops.operation import WaitOperation
    from durable.ports import Ports

ARMED_AHEAD = 5.0
"""An armed timer spares a new one only while it lies this far ahead of our clock: clocks differ by a second or two."""

CHANNELS_NAMED = 8
REASON_CHARS = 300
FAILURES_NAMED = 8
"""Entries that a failed run names as the reason: a retry begins there."""
_ERROR: TypeAdapter[ErrorInfo] = TypeAdapter(ErrorInfo)


class ResultNotStorable(Misuse):
    """The workflow returned a value that cannot be stored."""


def arm(ports: Ports, run: Run, due_at: float | None) -> float | None:
    """Makes sure that a timer fires at `due_at` or before; the due time of the timer that is set."""
    if due_at is None:
        return run.armed
    if run.armed is not None and ports.clock.now() + ARMED_AHEAD < run.armed <= due_at:
        return run.armed
    ports.timers.arm(run.id, due_at)
    return due_at


def suspended(
    run: Run,
    waits: Sequence[WaitOperation],
    *,
    due_at: float | None,
    armed: float | None,
    code_version: str,
    now: float,
) -> Settlement:
    """The run sleeps; `waits` lets the next turn check that its code still waits for the same things."""
    named, further = name_waits(waits)
    channels = sorted({channel for wait in waits for channel in wait.channels})
    return Settlement(
        status="suspended", at=now, started_at=begun(run), due_at=due_at, armed=armed,
        waiting_for=tuple(channels) if len(channels) <= CHANNELS_NAMED else ("*",),
        waits=(*_retry_of(run), *named), waits_digest=further,
        reason=_described(waits) or "the next attempt of a step",
        code_version=code_version, python=run.python or python_minor(), deadline=run.deadline,
    )  # fmt: skip


def ended(app: App, ports: Ports, run: Run, execution: Execution, *, unread: int, now: float) -> Settlement:
    """The workflow has returned or raised. A result that cannot be stored blocks the run: new code can mend that."""
    match execution.outcome:
        case Returned(value):
            workflow = app.find(run.workflow, run.version)
            try:
                text = codec.encode(value, workflow.output_type)
            except (NotStorable, LimitExceeded) as error:
                message = f'the result of workflow "{run.workflow}" cannot be stored: {error}'
                raise ResultNotStorable(message) from None
            stored = _stored_apart(ports, run, text)
            return Settlement(
                status="completed", at=now, started_at=begun(run), output=None if stored else text,
                output_stored=stored, undelivered=unread, python=run.python or python_minor(),
                waits=_retry_of(run),
            )  # fmt: skip
        case Raised(error):
            status = "cancelled" if execution.ended_by_cancellation else "failed"
            info = failures.record(error)
            stored = _stored_apart(ports, run, _ERROR.dump_json(info).decode())
            return Settlement(
                status=status, at=now, started_at=begun(run), error=_brief(info) if stored else info,
                output_stored=stored, undelivered=unread, reason=_cut(str(info)), python=run.python or python_minor(),
                failed_at=failures.origins(error, FAILURES_NAMED), deadline=run.deadline,
                waits=_retry_of(run),
            )  # fmt: skip
        case _:
            assert_never(execution.outcome)


def blocked(run: Run, misuse: Misuse | LimitExceeded, code_version: str, now: float) -> Settlement:
    """Needs new code or a person; the history stays as it is."""
    return Settlement(
        status="blocked", at=now, started_at=begun(run), code_version=code_version, waits=run.waits,
        waits_digest=run.waits_digest, waiting_for=run.waiting_for, reason=str(misuse), python=run.python,
        # A rollback that is blocked still knows what it ends in, and why.
        error=run.error if run.ending else _brief(failures.record(misuse)),
        output_stored=run.output_stored, ending=run.ending, failed_at=run.failed_at, deadline=remainder(run, now),
    )  # fmt: skip


def dead(run: Run, now: float) -> Settlement:
    """Given up: invocations die again and again without a result."""
    began = datetime.fromtimestamp(begun(run), UTC)
    message = (
        f"{run.epoch - 1 - max(run.clean_epoch, run.released_epoch)} invocations in a row ended without a result "
        f"(the run began at {began:%Y-%m-%d %H:%M} UTC). Look for crashes, memory and time limits in the function's log."
    )
    return Settlement(
        status="dead", at=now, started_at=begun(run), error=ErrorInfo(type="RunDead", message=message),
        reason=message, python=run.python, failed_at=run.failed_at, deadline=run.deadline,
    )  # fmt: skip


def stopped(run: Run, ending: Ending, *, unread: int, now: float) -> Settlement:
    """The run ends without its code having a say."""
    return Settlement(
        status=ending, at=now, started_at=begun(run), undelivered=unread, reason=_why(run, ending), python=run.python,
    )  # fmt: skip


def undone_first(settlement: Settlement) -> Settlement:
    """The same ending, once the run's steps are undone: that begins at once, in a turn of its own."""
    return replace(settlement, status="rolling_back", ending=settlement.status, due_at=settlement.at)


def undoing(run: Run, *, due_at: float | None, armed: float | None, now: float) -> Settlement:
    """The rollback goes on in another turn."""
    return Settlement(
        status="rolling_back", at=now, started_at=begun(run), due_at=due_at, armed=armed, ending=run.ending,
        failed_at=run.failed_at, error=run.error, output_stored=run.output_stored, reason=_why(run, run.ending),
        python=run.python, deadline=run.deadline,
    )  # fmt: skip


def due_at_once(settlement: Settlement, now: float) -> Settlement:
    """The same after something has asked for a turn: where that may have been its own timer, a turn follows at once."""
    if settlement.due_at is None or settlement.due_at > now + ARMED_AHEAD:
        return settlement
    return replace(settlement, at=now, due_at=now)


def undone(
    ports: Ports,
    run: Run,
    ending: Status,
    *,
    full_error: str | None,
    not_undone: Sequence[str],
    unread: int,
    now: float,
) -> Settlement:
    """The rollback is over; steps that could not be undone are named."""
    stored = run.output_stored and full_error is not None and _stored_apart(ports, run, full_error)
    left = f" NOT UNDONE, see to it by hand: {', '.join(not_undone)}" if not_undone else ""
    reason = _why(run, ending)
    return Settlement(
        status=ending, at=now, started_at=begun(run), failed_at=run.failed_at, error=run.error, output_stored=stored,
        undelivered=unread, reason=_cut(reason, REASON_CHARS - min(len(left), REASON_CHARS // 2)) + _cut(left),
        python=run.python, deadline=run.deadline,
    )  # fmt: skip


def as_settled(run: Run, settlement: Settlement) -> Run:
    """The record of a run that this settlement has ended, as far as others are told of it."""
    return replace(
        run, status=settlement.status, output=settlement.output, output_stored=settlement.output_stored,
        error=settlement.error, reason=settlement.reason, outbox=settlement.outbox, clean_epoch=run.epoch,
        finished_at=settlement.at,
    )  # fmt: skip


def _retry_of(run: Run) -> tuple[Wait, ...]:
    """That it was retried counts as long as its code is executed, be it to check that it replays."""
    return tuple(wait for wait in run.waits if wait.digest.startswith(RETRIED))


def _why(run: Run, ending: Status | None) -> str:
    match ending:
        case "cancelled":
            return "cancelled by a client"
        case "timed_out":
            return "the run reached its timeout"
        case _:
            return _cut(str(run.error))


def _stored_apart(ports: Ports, run: Run, text: str) -> bool:
    if len(text.encode()) <= INLINE_BYTES:
        return False
    ports.store.put_payload(run.id, "output", text, epoch=run.epoch)
    return True


def _described(waits: Sequence[WaitOperation]) -> str:
    """What the run waits for, in words: of very many waits only as many as will be read."""
    text = ""
    for wait in waits:
        text += f", {wait.describe()}" if text else wait.describe()
        if len(text) > REASON_CHARS:
            break
    return _cut(text)


def _brief(info: ErrorInfo) -> ErrorInfo:
    """What of an error fits into the run record."""
    return ErrorInfo(type=info.type, module=info.module, message=_cut(info.message))


def _cut(text: str, length: int = REASON_CHARS) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
