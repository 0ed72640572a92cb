from datetime import timedelta

import pytest

from durable.model.duration import optional_seconds, seconds


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("5m", 300),
        ("2h30m", 9000),
        ("3 days", 259_200),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("500ms", 0.5),
        ("1 week, 2 days", 777_600),
        ("1 hour 5 min", 3900),
        ("  90 s ", 90),
        ("-5m", -300),
        (timedelta(minutes=2), 120),
        (timedelta(seconds=-1), -1),
        (10, 10),
        (0.25, 0.25),
        (0, 0),
    ],
)
def test_what_people_write_is_understood(written, meant) -> None:
    assert seconds(written) == meant


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("10", 'has no unit: write "10s" or "10m"'),
        ("1.5", "has no unit"),
        ("1M", 'use "m" for minutes'),
        ("2 months", "count days"),
        ("1 year", "count days"),
        ("5S", 'write "s"'),
        ("5 fortnights", "the units are"),
        ("", "is not a duration"),
        ("soon", "is not a duration"),
        ("5m5m", "is not a duration"),
        ("5m 3", "is not a duration"),
        ("٣m", "is not a duration"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        ("4000 days", "ten years"),
        (timedelta(days=-4000), "ten years"),
    ],
)
def test_what_is_unclear_is_refused_with_a_hint(written, hint) -> None:
    with pytest.raises(ValueError, match=hint):
        seconds(written)


@pytest.mark.parametrize("written", [True, None, b"5m", [5]])
def test_what_is_no_duration_is_a_type_error(written) -> None:
    with pytest.raises(TypeError, match="must be seconds, a timedelta or a text"):
        seconds(written)


def test_the_error_names_the_argument_and_its_minimum() -> None:
    with pytest.raises(ValueError, match=r"Step\(timeout=...\) must be at least 1 s, not 0.5 s"):
        seconds(0.5, "Step(timeout=...)", minimum=1)


def test_no_duration_stays_none() -> None:
    assert optional_seconds(None, "timeout") is None
    assert optional_seconds("1m", "timeout") == 60
