"""Deleting runs that have ended, with all that they have stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable import deletion
from durable.client import family
from durable.client.part import ClientPart
from durable.errors import DeletionRefused
from durable.model.ids import generation_id, generation_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from durable.model.run import Run


class Deleting(ClientPart):
    """The part of the client that forgets runs."""

    def delete(self, run_id: str) -> None:
        """Forgets a run that has ended: record, history, messages, large values; the children that it started go first.

        Of a run that has continued as new the whole lineage goes. Children that are open, and those that others wait for,
        stay. Afterwards the id is free; a spent idempotency key stays spent. A deletion that fails in between is completed
        by maintenance, or by another call.

        Raises:
            RunNotFound: There is no such run.
            DeletionRefused: It is open, or somebody still needs it; nothing was deleted.
        """
        run = self.get(run_id)
        if not run.ended:
            raise DeletionRefused(run_id, f"it is {run.status}", "Cancel or terminate it first.")
        if not run.deleting and (why := deletion.who_needs(self.ports, run)) is not None:
            raise DeletionRefused(run_id, why, "Wait until that is over, or end what waits.")
        if not self._delete_tree(run):
            raise DeletionRefused(run_id, "it has been retried", "Cancel or terminate it first.")

    def _delete_tree(self, run: Run) -> bool:
        """The oldest of the lineage goes first: as long as the last is there, the deletion can be repeated."""
        for member in (*self._before(run), run):
            for child_id in family.children(self.ports, member.id):
                child = self.ports.store.get(child_id)
                if child is not None and child.parent == member.id and child.ended:
                    last = self.get(child.id)
                    if last.ended and deletion.who_needs(self.ports, last) is None:
                        self._delete_tree(last)
            if not deletion.delete(self.ports, member):
                return False
        return True

    def _before(self, run: Run) -> Iterator[Run]:
        for number in range(1, generation_of(run.id, run.lineage)):
            lineage = run.lineage or run.id
            member = self.ports.store.get(lineage if number == 1 else generation_id(lineage, number))
            if member is not None and (member.lineage or member.id) == lineage and member.ended:
                yield member
