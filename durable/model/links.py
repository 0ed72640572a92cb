"""What a run's tokens and addresses are made of: its identity, the key, and where the API is reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from durable.errors import NotAvailable
from durable.model.run import Cut
from durable.model.tokens import Claims, sign

if TYPE_CHECKING:
    from durable.model.entry import Entry

NOWHERE: Final = "https://nowhere.invalid"
"""The address of runs that are only replayed."""

SUBMISSION: Final = "/submit"
"""What the location of a callback's submission ends with, after that of the callback."""

SLACK_SECONDS: Final = 86_400.0
"""A token outlives the time that its submission begins with: the wait begins when that has succeeded, after retries."""


def _no_keys() -> Sequence[bytes]:
    return (bytes(32),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Makes the tokens of one run. Their secret is asked for when one is made, not before."""

    run_id: str
    born: int = 0
    """Tells the run from another that gets its id after it is deleted."""
    cuts: tuple[Cut, ...] = ()
    keys: Callable[[], Sequence[bytes]] = _no_keys
    public_url: str | None = None
    now: Callable[[], float] = float

    def callback_token(self, location: str, place: str, timeout: float) -> str:
        """The token that the outside system answers with."""
        return self._signed(Claims(
            kind="callback", run_id=self.run_id, location=location, id=answer_id(self.born, place),
            expires_at=round(self.now() + timeout + SLACK_SECONDS),
        ))  # fmt: skip

    def hook_url(self, location: str, extra: Mapping[str, str]) -> str:
        """The address of a webhook; good for as long as the run, and those that continue it, are there."""
        if self.public_url is None:
            raise NotAvailable("ctx.webhook without the address of the API (DURABLE_PUBLIC_URL)")
        claims = Claims(kind="webhook", run_id=self.run_id, location=location, id=f"webhook:{self.born}", extra=extra)
        return f"{self.public_url.rstrip('/')}/hooks/{self._signed(claims)}"

    def place_of(self, location: str, submitted: Entry | None) -> str:
        """Names a callback among those that stood at its location before the run was retried.

        `submitted` is the record of its submission: what is recorded before a retry stays what it was.
        """
        before = [cut.until for cut in self.cuts if submitted is None or cut.until < submitted.epoch]
        return f"{location}~r{max(before)}" if before else location

    def _signed(self, claims: Claims) -> str:
        return sign(self.keys()[0], claims)


def answer_id(born: int, place: str) -> str:
    """The id of the message that answers a callback: of several answers the first counts."""
    return f"callback:{born}:{place}"


def born_of(claims: Claims) -> int:
    """The `born` of the run that a token of `Links` is about."""
    return int(claims.id.split(":")[1])


def place_in(claims: Claims) -> str:
    """The place of the callback that a token is about: the id of its task row."""
    return claims.id.split(":", 2)[2]
