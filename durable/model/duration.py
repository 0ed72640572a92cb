"""Durations as people write them, turned into seconds."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Final, TypeAlias

from durable.model.limits import SLEEP_SECONDS

Duration: TypeAlias = timedelta | float | str
"""A timedelta, a number of seconds, or a text such as "5m", "2h30m", "1.5s" or "3 days"."""

_UNITS: Final[dict[str, float]] = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604_800.0),
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([A-Za-z]+)\s*(?:,\s*)?", re.ASCII)
_NUMBER = re.compile(r"\s*-?(\d+(?:\.\d+)?|\.\d+)\s*", re.ASCII)


def seconds(duration: Duration, what: str = "duration", *, minimum: float | None = None) -> float:
    """The length in seconds.

    Args:
        duration: What the author wrote.
        what: How the argument is called in an error.
        minimum: The smallest length that makes sense; None accepts a negative one (a deadline that has passed).

    Raises:
        ValueError: A number without a unit in a text, an unknown unit, no finite number, more than ten years, or less
            than the minimum.
        TypeError: Not a duration at all.
    """
    length = _length(duration, what)
    if not math.isfinite(length):
        raise ValueError(f"{what} must be a finite number of seconds, not {length}")
    if abs(length) > SLEEP_SECONDS:
        raise ValueError(f"{what} is {length / 86_400:,.0f} days; the limit is ten years")
    if minimum is not None and length < minimum:
        raise ValueError(f"{what} must be at least {minimum:g} s, not {length:g} s")
    return length


def optional_seconds(duration: Duration | None, what: str, *, minimum: float | None = 0.0) -> float | None:
    """The length in seconds, or None where no duration was given."""
    return None if duration is None else seconds(duration, what, minimum=minimum)


def _length(duration: object, what: str) -> float:
    if isinstance(duration, bool):
        raise TypeError(f"{what} must be seconds, a timedelta or a text, not {duration}")
    if isinstance(duration, int | float):
        return float(duration)
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, str):
        return _parse(duration, what)
    raise TypeError(f"{what} must be seconds, a timedelta or a text, not {type(duration).__name__}")


def _parse(text: str, what: str) -> float:
    if _NUMBER.fullmatch(text):
        raise ValueError(
            f'{what} "{text}" has no unit: write "{text.strip()}s" or "{text.strip()}m", or a number of seconds'
        )
    sign, rest = (-1.0, text.lstrip()[1:]) if text.lstrip().startswith("-") else (1.0, text)
    total, position, seen = 0.0, 0, set[float]()
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None:
            raise _unreadable(text, what)
        unit = _UNITS.get(part[2])
        if unit is None:
            raise _unknown_unit(text, part[2], what)
        if unit in seen:
            raise _unreadable(text, what)
        seen.add(unit)
        total += float(part[1]) * unit
        position = part.end()
    if not seen:
        raise _unreadable(text, what)
    return sign * total


def _unreadable(text: str, what: str) -> ValueError:
    return ValueError(f'{what} "{text}" is not a duration: write for example "90s", "5m", "2h30m" or "3 days"')


def _unknown_unit(text: str, unit: str, what: str) -> ValueError:
    if unit.lower() in {"mo", "month", "months", "y", "yr", "year", "years"} or unit == "M":
        hint = 'months and years differ in length: count days, or use "m" for minutes'
    elif unit.lower() in _UNITS:
        hint = f'write "{unit.lower()}"'
    else:
        hint = "the units are ms, s, m, h, d (days) and w (weeks)"
    return ValueError(f'{what} "{text}" has the unit "{unit}": {hint}')
