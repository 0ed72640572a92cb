"""A webhook: an address for an outside system, and waits for the calls to it.

| state     | history at the wait's location    | what happens                                                     |
|-----------|-----------------------------------|------------------------------------------------------------------|
| made      | nothing: the address is derived   | calls are kept in the run's mailbox                              |
| waiting   | nothing; the settle names the wait | takes the earliest call that nobody has taken and that fits     |
| called    | an entry with the call            | what the call carried is returned                                |
| timed out | an entry with an error            | WaitTimeout is raised                                            |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from durable.errors import ErrorInfo, WaitTimeout
from durable.ops.operation import Host, WaitOperation, until

if TYPE_CHECKING:
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage


class HookCallOperation(WaitOperation):
    """`await hook.wait(Payment, timeout="30m")`."""

    __slots__ = ("_hook", "_timeout", "_type", "channels")
    kind = "webhook"

    def __init__(self, host: Host, hook: str, type: Any, *, timeout: float | None) -> None:
        self._hook = hook
        self._type = type
        self._timeout = timeout
        self.channels = (f"webhook:{hook}",)
        super().__init__(host, None, f"call of {hook.rpartition('/')[2]}")

    def asked_deadline(self) -> float | None:
        self.immediate = self._timeout is not None and self._timeout <= 0
        return None if self._timeout is None else self.journal.loop.now + max(0.0, self._timeout)

    def claim(self, messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
        return tuple(messages[:1])

    def on_messages(self, messages: Sequence[StoredMessage]) -> None:
        self.read(messages[0].body, self._type)

    def on_deadline(self) -> tuple[None, ErrorInfo]:
        return None, ErrorInfo(type=WaitTimeout.__qualname__, module=WaitTimeout.__module__, message="")

    def decode(self, entry: Entry) -> Any:
        if not entry.messages:
            raise WaitTimeout(self.location)
        return self.read(entry.messages[0].body, self._type)

    def describe(self) -> str:
        return f'a call of webhook "{self._hook}"{until(self.deadline)}'


def hook_location(host: Host, name: str) -> str:
    """Claims a webhook's place: a second one of a name is another address."""
    return host.journal.enter("webhook", name).derived(name)
