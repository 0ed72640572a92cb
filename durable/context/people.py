"""What people and outside systems decide: reviews, breakpoints, callbacks, webhooks."""

# ruff: noqa: ARG002 - what is declared for later ignores its arguments

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from typing_extensions import TypeForm, TypeVar

from durable.context.part import Op, Part
from durable.model.duration import Duration, seconds
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
        """What one of the reviewers decides about the artifact."""
        self._missing("ctx.review")

    def breakpoint(self, label: str, /) -> Op[None]:
        """Returns when an operator says so."""
        self._missing("ctx.breakpoint")

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
