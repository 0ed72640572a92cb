"""What must hold after every port call, whatever was killed, frozen, doubled or late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from durable.testing.simulation.life import Life
from durable.testing.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from durable.adapters.memory import MemoryStore
    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.model.run import Run
    from durable.testing.simulation.seams import PortCall

READS: Final = frozenset({
    "store.get", "store.load", "store.get_payload", "store.due_runs", "store.announce", "store.buried", "store.watchers",
    "store.start_task", "store.beat_task", "store.close_task", "store.get_task", "store.get_reply", "store.put_reply",
})  # fmt: skip
"""Calls after which histories and mailboxes are what they were."""
BIRTHS: Final = frozenset({"store.create", "store.continue_as_new"})
SETTLES: Final = frozenset({"store.settle", "store.release", "store.continue_as_new"})


class Watch:
    """Looks at every run; `main` is the one that a seed is about, if it is about one."""

    def __init__(self, store: MemoryStore, main: str | None, *, stored: int | None = None) -> None:
        self.store = store
        self._main = main
        self._stored = stored
        self.lives: dict[str, Life] = {}

    # The run that the seed is about, and those that continue it

    @property
    def lineage(self) -> Sequence[Life]:
        """From the first to the last."""
        assert self._main is not None
        lives = [self.lives[self._main]]
        while (successor := lives[-1].run.successor) is not None:
            lives.append(self.lives[successor])
        return lives

    @property
    def run(self) -> Run:
        """The record of the last run."""
        assert self._main is not None
        return self.last_of(self._main)

    @property
    def output(self) -> Any:
        """What the last run has returned."""
        return self.output_of(self.run)

    def history(self) -> dict[str, Entry]:
        """The entries of the last run that count, by key."""
        return self.lineage[-1].history()

    def kept(self) -> dict[str, Entry]:
        """What was kept of its pruned entries, by key."""
        return self.lineage[-1].kept()

    def consumed(self, messages: Sequence[str]) -> set[str]:
        """Which of the messages some run of the lineage has consumed for good."""
        entries = [entry for life in self.lineage for entry in life.history().values()]
        named = {message.id for entry in entries for message in entry.messages}
        return (named | self.store.buried(self.lineage[0].run_id, messages)) & set(messages)

    # Any run

    def __str__(self) -> str:
        return "; ".join(
            f"{run.id}: {run.status}, due at {run.due_at}, epoch {run.epoch - run.born}, waits for {run.waiting_for}: {run.reason}"
            for run in self.open_runs()
        )

    def last_of(self, run_id: str) -> Run:
        """The record of a run, or of the last of those that continue it."""
        run = self.lives[run_id].run
        while run.successor is not None:
            run = self.lives[run.successor].run
        return run

    def output_of(self, run: Run) -> Any:
        """What a run has returned."""
        text = run.output
        return from_json(self.store.get_payload(run.id, "output") or "" if text is None else text)

    def open_runs(self) -> Iterator[Run]:
        """Those that have not ended."""
        return (run for run in self.store.runs if not run.ended)

    def mailbox(self, run_id: str) -> set[str]:
        """Ids of the messages in a mailbox."""
        return {message.id for message in self.store.mailbox(run_id)}

    def messages_to(self, run_id: str) -> dict[str, StoredMessage]:
        """All that a run has ever got and was not pruned, consumed or not, by id."""
        entries = self.lives[run_id].history().values() if run_id in self.lives else ()
        consumed = {message.id: message for entry in entries for message in entry.messages}
        return consumed | {message.id: message for message in self.store.mailbox(run_id)}

    # What is checked

    def notice(self) -> None:
        """Takes in runs that are new."""
        for run in self.store.runs:
            if run.id not in self.lives:
                self.lives[run.id] = Life(self.store, run, self._stored)

    def after_call(self, call: PortCall) -> None:
        """Checks whatever a call may have broken."""
        if call.name in BIRTHS:
            self.notice()
            self._check_lineages()
        life = self.lives.get(call.run_id or "")
        if life is None:
            return
        life.check_end()
        if call.name not in READS:
            life.check_bound()
        if call.name in SETTLES:
            life.check_settled()

    def _check_lineages(self) -> None:
        seen: dict[tuple[str, str], str] = {}
        for life in self.lives.values():
            for message in life.consumers:
                if seen.setdefault((life.lineage, message), life.run_id) != life.run_id:
                    raise Violation(f"I3: message {message} was consumed by two runs of the lineage of {life.lineage}")
