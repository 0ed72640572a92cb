"""The messages of one run that no entry has consumed, and which wait they resolve."""

from __future__ import annotations

import bisect
import logging
from collections import defaultdict
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from durable.errors import UndecodableHistory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from durable.model.message import MessageKind, StoredMessage
    from durable.ops.operation import WaitOperation

log = logging.getLogger("durable")


FINAL: Final[frozenset[MessageKind]] = frozenset({"child", "entity"})
"""Reports of runs, each of which comes once."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A wait that can be recorded: with the messages it consumes, or none because its deadline has passed."""

    wait: WaitOperation
    messages: Sequence[StoredMessage]


class Mailbox:
    """Keeps unconsumed messages by channel, in order of arrival."""

    def __init__(self, messages: Iterable[StoredMessage], consumed: Iterable[str]) -> None:
        self._consumed = set(consumed)
        self._known: set[str] = set()
        self._channels: defaultdict[str, list[StoredMessage]] = defaultdict(list)
        self._unfit: set[tuple[str, str]] = set()
        """Waits and messages that do not fit together."""
        self.add(messages)

    def __len__(self) -> int:
        return sum(map(len, self._channels.values()))

    @property
    def unread(self) -> Sequence[StoredMessage]:
        """Messages that nobody has consumed, in order of arrival."""
        return sorted((m for channel in self._channels.values() for m in channel), key=lambda m: m.order)

    @property
    def channels(self) -> Sequence[str]:
        """Channels with a message that nobody has consumed."""
        return [channel for channel, messages in self._channels.items() if messages]

    def add(self, messages: Iterable[StoredMessage]) -> None:
        """Takes in what was loaded; what is known or consumed already changes nothing."""
        for message in messages:
            if message.id in self._known or message.id in self._consumed:
                continue
            self._known.add(message.id)
            bisect.insort(self._channels[message.channel], message, key=lambda m: m.order)

    def consume(self, messages: Iterable[StoredMessage]) -> None:
        """Removes what an entry has consumed."""
        for message in messages:
            self._consumed.add(message.id)
            self._channels[message.channel].remove(message)

    def set_aside(self, wait: WaitOperation, messages: Iterable[StoredMessage]) -> None:
        """This wait cannot read these messages: they stay unread, for code that can, and do not hold up what follows them."""
        self._unfit.update((wait.key, message.id) for message in messages)

    def first_ready(self, waits: Iterable[WaitOperation], now: float) -> Ready | None:
        """The wait that resolves first in event time.

        The smallest of message arrival and deadline wins; on a tie the message, then the wait that was called first.
        A message beats a zero or past duration, so that draining a mailbox never loses to its own `sleep(0)`.
        """
        best: tuple[float, int, int] | None = None
        ready: Ready | None = None
        for wait in waits:
            messages = wait.claim(self._in_time(wait)) if wait.channels else ()
            if messages:
                key = (messages[0].arrived_at, 0, wait.seq)
            elif wait.deadline is not None and wait.deadline <= now:
                key = (inf if wait.immediate else wait.deadline, 1, wait.seq)
            else:
                continue
            if best is None or key < best:
                best, ready = key, Ready(wait, messages)
        return ready

    def _in_time(self, wait: WaitOperation) -> Sequence[StoredMessage]:
        messages = self._of(wait.channels)
        if self._unfit:
            messages = [message for message in messages if (wait.key, message.id) not in self._unfit]
        if wait.deadline is None or wait.immediate or not messages or messages[-1].arrived_at <= wait.deadline:
            return messages
        return [message for message in messages if message.arrived_at <= wait.deadline]

    def _of(self, channels: Sequence[str]) -> Sequence[StoredMessage]:
        if len(channels) == 1 and channels[0] != "*":
            return self._channels.get(channels[0], ())
        chosen = [c for c in self._channels if c.startswith("signal:")] if "*" in channels else channels
        return sorted((m for c in chosen for m in self._channels[c]), key=lambda m: m.order)


def fits(wait: WaitOperation, message: StoredMessage) -> bool:
    """Whether a message fits what the code waits for. Anybody may send anything: that must not stop the run.

    Raises UndecodableHistory for a report that no other will follow: nothing but other code can mend that.
    """
    try:
        wait.on_messages([message])
    except UndecodableHistory as problem:
        if message.kind in FINAL:
            raise
        log.warning("a message stays unread: %s", problem)
        return False
    return True
