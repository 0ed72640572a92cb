"""Scopes, names, and what sealing leaves of a history."""

from __future__ import annotations

import pytest

from durable.errors import DuplicateName
from durable.journal import Scope, name_waits, shortened
from durable.model.entry import Entry
from durable.model.sealing import seal


def entry(location: str, mark: str = "", kind: str = "step", n: int = 1) -> Entry:
    return Entry(location=location, mark=mark, kind=kind, epoch=1, n=n, at=0.0)  # type: ignore[arg-type]


def test_derived_names_are_numbered_when_they_repeat() -> None:
    scope = Scope("poll[3]/")
    assert [scope.derived("charge") for _ in range(3)] == [
        "poll[3]/charge",
        "poll[3]/charge#2",
        "poll[3]/charge#3",
    ]


def test_explicit_names_are_unique_in_their_scope_and_only_there() -> None:
    scope = Scope()
    assert scope.explicit("mail") == "mail"
    assert scope.within("poll[1]/").explicit("mail") == "poll[1]/mail"
    with pytest.raises(DuplicateName, match="in the workflow's own scope"):
        scope.explicit("mail")
    scope.derived("charge")
    with pytest.raises(DuplicateName):
        scope.explicit("charge")


def test_a_name_cannot_leave_its_scope() -> None:
    assert Scope().explicit("poll[3]/mail") == "poll%5B3%5D%2Fmail"


def test_scopes_carry_the_keys_of_all_branches_around_them() -> None:
    outer = Scope().within("both/a/", "a,b")
    assert outer.within("both/a/poll[0]/").branches == "a,b"
    assert outer.within("both/a/race/x/", "x,y").branches == "a,b|x,y"


def test_long_keys_are_shortened_and_still_differ() -> None:
    keys = ",".join(f"branch-{number}" for number in range(50))
    assert len(shortened(keys)) < 60
    assert shortened(keys) != shortened(keys + ",more")


def test_progress_replaces_the_iterations_before_it() -> None:
    history = [
        entry("before"), entry("poll[0]/a"), entry("poll[19]/b", "@1"), entry("poll", "~20", "loop"),
        entry("poll[20]/a"), entry("poll", "~40", "loop"), entry("poll[40]/inner[3]/a"), entry("poll[41]/a"),
    ]  # fmt: skip
    progress, over, left = seal(history)
    assert progress == {"poll": 40}
    assert over == frozenset()
    assert [each.key for each in left] == ["before", "poll~40", "poll[40]/inner[3]/a", "poll[41]/a"]


def test_a_result_replaces_a_whole_loop_nested_ones_included() -> None:
    history = [
        entry("poll[0]/inner[0]/a"), entry("poll[0]/inner", "~1", "loop"), entry("poll[0]/inner", kind="loop"),
        entry("poll", "~1", "loop"), entry("poll", kind="loop"), entry("poller[0]/a"),
    ]  # fmt: skip
    progress, over, left = seal(history)
    assert progress == {}
    assert over == {"poll", "poll[0]/inner"}
    assert [each.key for each in left] == ["poll", "poller[0]/a"]


def test_a_history_without_loops_is_left_alone() -> None:
    history = [entry("a"), entry("b")]
    assert seal(history) == ({}, frozenset(), history)


def test_no_waits_have_no_digest() -> None:
    assert name_waits([]) == ((), None)
