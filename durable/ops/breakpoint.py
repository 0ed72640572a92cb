"""A breakpoint: the run stands still until an operator lets it go on.

| state   | history at the location      | what happens                               |
|---------|------------------------------|--------------------------------------------|
| reached | nothing; the settle names it | an operator's `continue` wakes the run     |
| passed  | an entry with that message   | returns None                               |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from durable.ops.operation import Host, WaitOperation

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage


class BreakpointOperation(WaitOperation):
    """`await ctx.breakpoint("before-payment")`."""

    __slots__ = ("_label", "channels")
    kind = "wait"

    def __init__(self, host: Host, label: str) -> None:
        self._label = label
        self.channels = (continue_channel(label),)
        super().__init__(host, label, "breakpoint")

    def asked_deadline(self) -> None:
        self.immediate = False

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
        return tuple(messages[:1])

    def decode(self, entry: Entry) -> None:
        pass

    def describe(self) -> str:
        return f'breakpoint "{self._label}"'


def continue_channel(label: str) -> str:
    """What a run that stands at the breakpoint waits for."""
    return f"continue:{label}"
