"""What people and outside systems decide: reviews, breakpoints, callbacks, webhooks."""

# ruff: noqa: ARG002 - what is declared for later ignores its arguments

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic_core import PydanticSerializationError, to_json
from typing_extensions import TypeForm, TypeVar

from durable.context.part import Op, Part
from durable.errors import NotStorable
from durable.model.duration import Duration, optional_seconds, seconds
from durable.model.ids import check_name
from durable.ops.breakpoint import BreakpointOperation
from durable.ops.review import ReviewOperation
from durable.pending import not_available
from durable.values import Review

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
    """An address that an outside system calls."""

    __slots__ = ("url",)

    def __init__(self, url: str) -> None:
        self.url = url

    def wait(self, type: TypeForm[T], /, *, timeout: Duration | None = None) -> Op[T]:
        """What the first call carried; one that came before the wait counts."""
        not_available("ctx.webhook")


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
    ) -> Op[T]:
        """Hands a token to an outside system and gives what that reports with it."""
        self._missing("ctx.callback")

    def webhook(self, name: str, /, *, respond: object = None) -> Webhook:
        """An address for an outside system; a call to it is waited for by `.wait()`."""
        self._missing("ctx.webhook")


def _reviewers(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not names:
        raise ValueError(f'ctx.review(reviewers=...) is a list of names, for example ["ann"], not {names!r}')
    return tuple(check_name("reviewer", name) for name in names)


def _artifact_text(name: str, artifact: object) -> str:
    try:
        return to_json(artifact).decode()
    except PydanticSerializationError as problem:
        raise NotStorable(f'the artifact of review "{name}" has no JSON form: {problem}') from None
