"""A message to another run: recorded first, then sent under an id that is always the same.

| state    | history at the location | what happens                                                    |
|----------|-------------------------|-----------------------------------------------------------------|
| new      | nothing                 | the engine records it, then sends, then lets the code go on     |
| recorded | an entry without value  | after a take-over the engine sends again under the same id; the code goes on |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.model.sending import RecordedSend
from durable.ops.effect import EffectOperation, Stamp
from durable.ops.operation import Host

if TYPE_CHECKING:
    from durable.model.entry import Entry


class SendOperation(EffectOperation):
    """`await ctx.mailbox.send(run_id, APPROVE, body)`."""

    __slots__ = ("_sender", "body", "delay", "run_id", "signal")
    kind = "send"

    def __init__(self, host: Host, run_id: str, signal: str, body: str, delay: float = 0.0) -> None:
        self._sender = host.run_id
        self.run_id = run_id
        """The run that the message is for."""
        self.signal = signal
        self.body = body
        """JSON text."""
        self.delay = delay
        super().__init__(host, None, "send")

    def record_text(self, stamp: Stamp) -> str:
        send = RecordedSend(
            to=self.run_id,
            message_id=stamp.message_id(self._sender, self.location),
            name=self.signal,
            body=self.body,
            delay=self.delay,
        )
        return send.to_text()

    def decode(self, entry: Entry) -> None:
        pass
