"""Scopes: namespaces of operation names that travel with the tasks of a workflow."""

from __future__ import annotations

from contextvars import ContextVar
from functools import lru_cache
from hashlib import blake2b

from durable.errors import DuplicateName, UnawaitedOperation
from durable.model import location as locations


class Scope:
    """A namespace of operation names. It travels with the task, in a context variable."""

    __slots__ = ("branches", "prefix", "unawaited", "used")

    def __init__(self, prefix: str = "", branches: str | None = None) -> None:
        self.prefix = prefix
        self.branches = branches
        """Keys of the joins and races around; they are part of what every entry in here is checked for."""
        self.used: dict[str, int] = {}
        self.unawaited: dict[str, str] = {}
        """Location and kind of operations that were called and not awaited yet."""

    def explicit(self, name: str) -> str:
        """The location of a name that the author gave; DuplicateName when the scope has it already."""
        name = locations.escape(name)
        if name in self.used:
            raise DuplicateName(name, self.prefix)
        self.used[name] = 1
        return locations.check_length(self.prefix + name)

    def derived(self, name: str) -> str:
        """The location of a name that was taken from a function; numbered when it repeats: `charge`, `charge#2`."""
        name = locations.escape(name)
        count = self.used.get(name, 0) + 1
        self.used[name] = count
        location = self.prefix + name if count == 1 else f"{self.prefix}{name}#{count}"
        return location if len(location) < locations.SURELY_SHORT else locations.check_length(location)

    def within(self, prefix: str, keys: str | None = None) -> Scope:
        """A scope inside this one; `keys` are those of a join or race that it is a branch of."""
        around = self.branches
        branches = around if keys is None else shortened(keys if around is None else f"{around}|{keys}")
        return Scope(prefix, branches)


current_scope: ContextVar[Scope] = ContextVar("durable_scope")


class Entered:
    """`with Entered(scope):` what the code calls is in that scope."""

    __slots__ = ("_scope", "_token")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __enter__(self) -> None:
        self._token = current_scope.set(self._scope)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # A coroutine of an invocation that died is dropped, and closed in whatever context: nothing is to be put back.
        if kind is not GeneratorExit:
            current_scope.reset(self._token)


@lru_cache(1024)
def shortened(keys: str) -> str:
    """Branch keys as entries carry them: as they are, or a hash where they are long."""
    if len(keys) <= 80:  # every entry in the branch carries it
        return keys
    return f"{keys[:40]}...{blake2b(keys.encode(), digest_size=6).hexdigest()}"


def unawaited(scope: Scope) -> UnawaitedOperation:
    """The error of a scope that ends with operations that were called and never awaited."""
    location, kind = next(iter(scope.unawaited.items()))
    others = len(scope.unawaited) - 1
    more = f" ({others} more)" if others else ""
    return UnawaitedOperation(
        f'{kind} "{location}"{more} was called and never awaited, so it did not run. Write: await ctx.{kind}(...). '
        "To run several at once use asyncio.gather or ctx.join."
    )
