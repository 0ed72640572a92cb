"""How much of what can go wrong still may, in one seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - handed in, seeded


class Luck:
    """A budget of faults. Where a seed makes many calls, each of them is less likely to be hit."""

    def __init__(self, random: Random, faults: int, rate: float) -> None:
        self._random = random
        self._left = faults
        self._rate = rate

    def fails(self, chance: float) -> bool:
        """Whether it goes wrong this time."""
        if self._left == 0 or self._random.random() >= chance * self._rate:
            return False
        self._left -= 1
        return True
