"""Locations and their digests."""

from __future__ import annotations

import pytest

from durable.errors import InvalidName, LimitExceeded
from durable.model.location import check_length, digest, enclosing, escape, lies_within


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("charge", "charge"),
        ("a/b", "a%2Fb"),
        ("50%", "50%25"),
        ("poll[3]~1@2?#", "poll%5B3%5D%7E1%402%3F%23"),
        ("line\nbreak", "line%0Abreak"),
        ("größe", "größe"),
    ],
)
def test_names_cannot_be_taken_for_scopes_or_marks(name: str, escaped: str) -> None:
    assert escape(name) == escaped


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(InvalidName, match="empty"):
        escape("")


def test_a_location_that_does_not_fit_into_a_key_is_refused() -> None:
    assert check_length("x" * 850) == "x" * 850
    with pytest.raises(LimitExceeded, match="851 bytes; the limit is 850"):
        check_length("x" * 851)
    with pytest.raises(LimitExceeded, match="Use shorter names"):
        check_length("ü" * 426)


def test_the_scopes_around_a_location_are_its_loops_iterations_and_branches() -> None:
    assert list(enclosing("go")) == []
    assert list(enclosing("poll[3]/both/a/go")) == ["poll", "poll[3]/", "poll[3]/both/", "poll[3]/both/a/"]
    assert list(enclosing("a[1]/b[2]/go")) == ["a", "a[1]/", "a[1]/b", "a[1]/b[2]/"]


def test_a_digest_tells_which_scopes_it_lies_in_and_nothing_else() -> None:
    wait = digest("poll[3]/both/a/go", "wait")
    assert all(lies_within(wait, scope) for scope in enclosing("poll[3]/both/a/go"))
    assert not any(lies_within(wait, scope) for scope in ("poll[2]/", "poll[3]/both/b/", "both/", "go"))
    assert not lies_within(digest("go", "wait"), "poll[3]/")


def test_digests_are_short_and_differ_by_location_and_kind() -> None:
    assert len(digest("go", "wait")) == 8
    assert len({digest("go", "wait"), digest("go", "sleep"), digest("went", "wait")}) == 3
