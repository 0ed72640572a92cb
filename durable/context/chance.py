"""Randomness that is the same on every replay and does not shift when code elsewhere draws more or less of it."""

from __future__ import annotations

from hashlib import blake2b
from random import Random  # noqa: TID251 - the one seeded source of workflow code
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

from durable.errors import OperationInsideStep
from durable.journal import current_scope
from durable.loop import running_loop

if TYPE_CHECKING:
    from durable.execution import Execution


class Draws:
    """Numbers by run, scope and count: each scope (a branch, an iteration, the root) has streams of its own."""

    __slots__ = ("_drawn", "_execution")

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._drawn: dict[tuple[str, str], int] = {}

    def draw(self, stream: str, size: int) -> bytes:
        """The next `size` bytes of a stream of the current scope."""
        loop = self._execution.loop
        if running_loop() is not loop:
            raise loop.fail(OperationInsideStep(f"ctx.{stream}"))
        scope = current_scope.get().prefix
        count = self._drawn.get((stream, scope), 0)
        self._drawn[stream, scope] = count + 1
        seed = f"{self._execution.run_id}\n{scope}\n{stream}\n{count}".encode()
        drawn = blake2b(seed, digest_size=max(1, min(size, 64))).digest()
        block = 0
        while len(drawn) < size:
            block += 1
            drawn += blake2b(seed + b"\n%d" % block, digest_size=64).digest()
        return drawn[:size]

    def uuid(self) -> UUID:
        """The next UUID of the current scope, of version 4 in form."""
        return UUID(bytes=self.draw("uuid()", 16), version=4)


class ScopedRandom(Random):
    """`ctx.random`: all of `random.Random`, drawn from the stream of the scope that asks."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        super().__init__(0)

    def random(self) -> float:
        return (int.from_bytes(self._draws.draw("random", 7), "big") >> 3) * 2.0**-53

    def getrandbits(self, k: int, /) -> int:
        if k < 0:
            raise ValueError("the number of bits must not be negative")
        size = (k + 7) // 8
        return int.from_bytes(self._draws.draw("random", size), "big") >> (size * 8 - k)

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        # The inherited one keeps a second value for the next call, which may come from another scope.
        return self.normalvariate(mu, sigma)

    def seed(self, *_args: Any, **_kwargs: Any) -> None:
        # Called once by the constructor; the run and the scope are the seed.
        return

    def getstate(self) -> NoReturn:
        raise NotImplementedError("ctx.random has no state to save: it is the same on every replay")

    def setstate(self, state: Any) -> NoReturn:
        raise NotImplementedError("ctx.random has no state to set: it is the same on every replay")
