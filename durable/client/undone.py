"""What a client will be able to do: declared with its types, refused with NotAvailable."""

# ruff: noqa: ARG002 - what is declared for later ignores its arguments

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from durable.pending import not_available

if TYPE_CHECKING:
    from durable.client.handle import RunHandle


class Undone:
    """The part of the client whose machinery is not there yet."""

    __slots__ = ()

    def pause(self, run_id: str) -> None:
        """Starts no new work of the run; nothing is lost."""
        not_available("client.pause")

    def unpause(self, run_id: str) -> None:
        """Lets a paused run go on."""
        not_available("client.unpause")

    def rerun_from(self, run_id: str, location: str) -> None:
        """Forgets an operation and all recorded after it, and lets the run go on from there."""
        not_available("client.rerun_from")

    def fork(self, run_id: str, location: str) -> RunHandle[Any]:
        """Starts a run that shares the past up to an operation."""
        not_available("client.fork")
