"""A removed operation: accepts what the history holds of code that was deleted.

| history at the name                    | what happens                                                              |
|----------------------------------------|---------------------------------------------------------------------------|
| nothing                                | nothing                                                                   |
| a result, and results inside of it     | each is passed over when its turn comes in the order of record            |
| attempts of a step without a result    | they are ignored: the step is not tried again                             |
| a wait that the run sleeps on          | nobody waits for it any more: the code goes on at once                    |
| an operation of another kind           | the run diverges                                                          |

Nothing is recorded. The call stands where the operation stood, for as long as there are runs that have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, get_args

from durable.journal import current_scope
from durable.model.entry import Kind
from durable.ops.operation import DELIVERED, Host

if TYPE_CHECKING:
    from durable.journal import Scope
    from durable.model.entry import Entry

KINDS: Final = frozenset(get_args(Kind)) - {"cancel", "continuation", "removed"}


class Removed:
    """Stands for the deleted code in the journal: it claims every record of it and wants no result."""

    __slots__ = ("fn", "kind", "location", "scope")
    may_be_late: ClassVar[bool] = True
    waits: ClassVar[bool] = False
    awaited: ClassVar[bool] = True
    dead: ClassVar[bool] = True
    future: ClassVar = DELIVERED

    def __init__(self, kind: Kind, location: str, scope: Scope) -> None:
        self.kind: Kind = kind
        self.location = location
        self.scope = scope
        self.fn = None

    @property
    def key(self) -> str:
        """Where it stood."""
        return self.location

    def resolve(self, entry: Entry) -> bool:
        """Nobody takes the result."""
        del entry
        return False


def remove(host: Host, name: str, kind: Kind) -> None:
    """`ctx.removed("charge", "step")`; a name that repeats is counted as it was for the operation itself."""
    if kind not in KINDS:
        raise ValueError(f"ctx.removed({name!r}, {kind!r}): the kind is one of {', '.join(sorted(KINDS))}")
    journal = host.journal
    scope = journal.enter(kind, name)
    location = scope.derived(f"version:{name}" if kind == "version" else name)
    journal.accept_removed(Removed(kind, location, current_scope.get(journal.root)))
