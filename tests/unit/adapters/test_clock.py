"""Real ids and clocks, as far as a test may look at them."""

import re

from durable.adapters.clock import SystemClock, Ulids
from durable.adapters.memory import VirtualClock


def test_ids_are_ulids_that_sort_by_the_clock() -> None:
    clock = VirtualClock(1_796_000_000.0)
    new_id = Ulids(clock)
    first = new_id()
    clock.advance(0.001)
    second = new_id()
    assert re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{26}", first)
    assert first < second
    assert len({new_id() for _ in range(1000)}) == 1000


def test_the_system_clock_goes_on() -> None:
    clock = SystemClock()
    before, start = clock.now(), clock.monotonic()
    clock.sleep(-1)
    assert clock.now() >= before
    assert clock.monotonic() >= start
