"""What must hold after every port call, whatever was killed, frozen, doubled or late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from durable.engine.orchestrator import Delivery, Orchestrator
from durable.model.envelope import Wake, to_body
from durable.model.history import counting_entries
from durable.testing.interception import intercepted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from durable.adapters.memory import MemoryStore
    from durable.app import App
    from durable.model.entry import Entry
    from durable.model.run import Run
    from durable.ports import Ports


READS = frozenset({"store.get", "store.load", "store.get_payload", "store.due_runs", "store.announce"})


class Violation(AssertionError):
    """An invariant does not hold; the message begins with its number."""


class Watch:
    """Looks at one run's stored state, all of it at one instant, and remembers what may not change any more."""

    def __init__(self, store: MemoryStore, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._bound: dict[str, Entry] = {}
        self._end: Run | None = None

    @property
    def run(self) -> Run:
        """The run record."""
        run = self._store.get(self._run_id)
        assert run is not None
        return run

    def __str__(self) -> str:
        run = self.run
        return f"{run.status}, due at {run.due_at}, epoch {run.epoch - run.born}, waits for {run.waiting_for}: {run.reason}"

    def history(self) -> dict[str, Entry]:
        """The entries that count, by key."""
        return {entry.key: entry for entry in counting_entries(self.run, self._store.history(self._run_id))}

    def unread(self) -> list[str]:
        """Names of stored messages that no entry has consumed."""
        consumed = set(self.consumed())
        return [message.channel for message in self._store.mailbox(self._run_id) if message.id not in consumed]

    def consumed(self) -> list[str]:
        """Ids of messages as entries name them, one for each time."""
        return [message.id for entry in self.history().values() for message in entry.messages]

    def kept(self) -> set[str]:
        """Ids of the messages in the mailbox."""
        return {message.id for message in self._store.mailbox(self._run_id)}

    def after_call(self, name: str) -> None:
        """Checks whatever a call may have broken."""
        if self._end is not None:
            self._check_end()
        if name.startswith("store.") and name not in READS:
            self._check_bound()
        if name in {"store.settle", "store.release"}:
            self._check_settled()

    def _check_bound(self) -> None:
        """I1, I4: what a released epoch has recorded stays as it is; so does what a fence has let through."""
        run, history = self.run, self.history()
        for key, entry in self._bound.items():
            if history.get(key) != entry:
                raise Violation(
                    f"I4: {key} counted with {entry.value} of epoch {entry.epoch} and is {history.get(key)} now"
                )
        self._bound = {
            key: entry for key, entry in history.items() if entry.epoch <= run.clean_epoch or entry.epoch in run.fences
        }

    def _check_settled(self) -> None:
        run = self.run
        consumed = self.consumed()
        if len(consumed) != len(set(consumed)):
            raise Violation(f"I3: a message was consumed twice: {sorted(consumed)}")
        if run.ended:
            self._end = run
        elif run.status == "suspended" and run.lease_until is None and not run.waiting_for and run.due_at is None:
            raise Violation("I5: the run sleeps, and waits for nothing")

    def _check_end(self) -> None:
        if self.run != self._end:
            raise Violation(f"I6: the run had ended and has changed: {self}")


def check_messages(watch: Watch, sent: Sequence[str], queued: Sequence[str]) -> None:
    """I3: every accepted message was consumed once, or is still there to be."""
    consumed = watch.consumed()
    for message in sent:
        if (
            message not in consumed
            and message not in watch.kept()
            and not any(f'"{message}"' in body for body in queued)
        ):
            raise Violation(f"I3: message {message} has vanished")
    if len(consumed) != len(set(consumed)):
        raise Violation(f"I3: a message was consumed twice: {consumed}")


def check_send(watch: Watch, delivered: set[str]) -> None:
    """I3 for the receiver: what a run sends once arrives under one id, however often it was sent."""
    sends = [entry for entry in watch.history().values() if entry.kind == "send"]
    if len(delivered) != len(sends) or not all(one in (send.value or "") for one in delivered for send in sends):
        raise Violation(f"I3: recorded sends {[send.value for send in sends]}, delivered {delivered}")


def check_wake_of_ended_run(app: App[Any], ports: Ports, run_id: str) -> None:
    """I8: it costs one request and does nothing."""
    calls: list[str] = []

    def listening(name: str, perform: Callable[[], Any]) -> Any:
        calls.append(name)
        return perform()

    wake = to_body(Wake(run_id=run_id, id="late", reason="simulated"))
    orchestrator = Orchestrator(app, intercepted(ports, listening), code_version="1")
    orchestrator.process([Delivery(id="late", body=wake, arrived_at=ports.clock.now())], remaining=60)
    if calls != ["store.acquire"]:
        raise Violation(f"I8: a wake of an ended run made the calls {calls}")
