"""What people and outside systems decide: reviews, breakpoints, callbacks, webhooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pydantic_core import PydanticSerializationError, to_json
from typing_extensions import TypeForm, TypeVar

from durable.context.part import Op, Part
from durable.context.steps import PLAIN
from durable.errors import NotAvailable, NotStorable
from durable.model.duration import Duration, optional_seconds, seconds
from durable.model.hook import DEFAULT, WHOLE, HookResponse
from durable.model.ids import check_name
from durable.ops.breakpoint import BreakpointOperation
from durable.ops.callback import CallbackOperation, check_submit
from durable.ops.review import ReviewOperation
from durable.ops.webhook import HookCallOperation, hook_location
from durable.options import Step
from durable.values import Review

if TYPE_CHECKING:
    from durable.execution import Execution

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Escalation:
    """What happens to a review that nobody decides: more reviewers after a time, or a rejection."""

    after: float
    to: tuple[str, ...] = ()


def after(duration: Duration, /, *, to: Sequence[str] | str) -> Escalation:
    """Asks these reviewers too, after the duration."""
    reviewers = (to,) if isinstance(to, str) else tuple(to)
    if not reviewers:
        raise ValueError("after(duration, to=...) names nobody; use auto_reject(duration) to end the review")
    return Escalation(seconds(duration, "after(duration)", minimum=0.0), reviewers)


def auto_reject(duration: Duration, /) -> Escalation:
    """Rejects after the duration."""
    return Escalation(seconds(duration, "auto_reject(duration)", minimum=0.0))


class Webhook:
    """An address that an outside system calls. It may be passed on, also out of a branch."""

    __slots__ = ("_execution", "_extra", "_location", "_url")

    def __init__(self, execution: Execution, location: str, extra: Mapping[str, str]) -> None:
        self._execution = execution
        self._location = location
        self._extra = extra
        self._url: str | None = None

    @property
    def url(self) -> str:
        """The address. Whoever knows it may call it: it is a secret of the run and of the system that is given it.

        Raises:
            NotAvailable: The deployment has no public address, or no secret to sign with.
        """
        if self._url is None:
            try:
                self._url = self._execution.links.hook_url(self._location, self._extra)
            except NotAvailable as misuse:
                raise self._execution.loop.fail(misuse) from None
        return self._url

    def wait(self, type: TypeForm[T], /, *, timeout: Duration | None = None) -> Op[T]:
        """What the next call carried that nobody has taken; one that came before the wait counts.

        JSON is read as the type; any other text is a `str`, and what is no text a `str` in base64. Calls that do not
        fit are left for waits that they fit.

        Raises:
            WaitTimeout: There was none within `timeout`.
        """
        return cast(
            "Op[T]",
            HookCallOperation(
                self._execution, self._location, type, timeout=optional_seconds(timeout, "hook.wait(timeout=...)")
            ),
        )

    def __repr__(self) -> str:
        return f'<webhook "{self._location}">'


class People(Part):
    """The part of the context that waits for decisions from outside."""

    def review(
        self,
        name: str,
        artifact: object,
        /,
        *,
        reviewers: Sequence[str],
        timeout: Duration | None = None,
        escalate: Sequence[Escalation] = (),
    ) -> Op[Review]:
        """What one of the reviewers decides about the artifact.

        The artifact is shown to them: anything that has a JSON form. `escalate` is a list of `after("4h", to=["boss"])`,
        who may decide too from then on, and at most one `auto_reject("2 days")`.

        Raises:
            WaitTimeout: Nobody decided within `timeout`, and no `auto_reject` came first.
        """
        names = _reviewers(reviewers)
        for step in escalate:
            if step.to:
                _reviewers(step.to)
        rejections = [step.after for step in escalate if not step.to]
        if len(rejections) > 1:
            raise ValueError("ctx.review(escalate=...) holds more than one auto_reject")
        return ReviewOperation(
            self._execution,
            check_name("name of a review", name),
            _artifact_text(name, artifact),
            reviewers=names,
            timeout=optional_seconds(timeout, "ctx.review(timeout=...)"),
            escalated=[(step.after, step.to) for step in escalate if step.to],
            reject_after=rejections[0] if rejections else None,
        )

    def breakpoint(self, label: str, /) -> Op[None]:
        """Returns when an operator says so: `client.continue_breakpoint(run_id, label)`."""
        return BreakpointOperation(self._execution, check_name("label of a breakpoint", label))

    def callback(
        self,
        name: str,
        submit: Callable[[str], object],
        result: TypeForm[T],
        /,
        *,
        timeout: Duration,
        heartbeat: Duration | None = None,
        step: Step = PLAIN,
    ) -> Op[T]:
        """Hands a token to an outside system and gives what that reports with it.

        Args:
            name: Of the operation; a second callback of a name gets a token of its own.
            submit: Called with the token, as the step `<name>/submit`: sync or async, tried again when it fails.
            result: The type of what is reported.
            timeout: The longest time from the end of the submission to the report.
            heartbeat: The longest silence: a report or a sign of life (`client.heartbeat_callback`) ends it.
            step: How the submission is run: retries, timeout.

        Raises:
            StepFailed: The submission failed for good.
            CallbackFailed: The outside system reported a failure, or a result that does not fit the type.
            WaitTimeout: It did not report within `timeout`.
            HeartbeatTimeout: It was silent for longer than `heartbeat`; a WaitTimeout too.
        """
        return cast(
            "Op[T]",
            CallbackOperation(
                self._execution,
                check_name("name of a callback", name),
                check_submit(submit),
                result,
                timeout=seconds(timeout, "ctx.callback(timeout=...)", minimum=0.001),
                heartbeat=optional_seconds(heartbeat, "ctx.callback(heartbeat=...)", minimum=0.001),
                policy=step,
            ),
        )

    def webhook(self, name: str, /, *, respond: HookResponse = DEFAULT, whole: bool = False) -> Webhook:
        """An address for an outside system, `.url`; calls to it are waited for by `.wait()`.

        Args:
            name: A second webhook of a name gets an address of its own.
            respond: What callers are answered; it is part of the address.
            whole: Whether `.wait(HookRequest)` gives headers, query and the body as it came, so that a step can check a
                provider's signature. Otherwise it gives the payload alone.
        """
        location = hook_location(self._execution, check_name("name of a webhook", name))
        extra = respond.to_extra() | ({WHOLE: "yes"} if whole else {})
        return Webhook(self._execution, location, extra)


def _reviewers(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not names:
        raise ValueError(f'ctx.review(reviewers=...) is a list of names, for example ["ann"], not {names!r}')
    return tuple(check_name("reviewer", name) for name in names)


def _artifact_text(name: str, artifact: object) -> str:
    try:
        return to_json(artifact).decode()
    except PydanticSerializationError as problem:
        raise NotStorable(f'the artifact of review "{name}" has no JSON form: {problem}') from None
