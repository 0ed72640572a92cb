"""The timeline as a tree: scopes, iterations, rounds, what stands outside of them, and when waits began."""

from typing import Any

from durable.cli.timeline import Row, lines, rows
from tests.cli.test_timeline import RUN, at, entry, text


def tree(*entries: dict[str, Any]) -> list[str]:
    return [f"{'  ' * row.depth}{row.kind or '-'} {row.name}" for row in rows(RUN, entries)]


def the_row(found: list[Row], name: str) -> Row:
    [row] = [row for row in found if row.name == name]
    return row


def test_branches_stand_under_their_join_in_the_order_of_their_first_record():
    recorded = [
        entry("both/b/pay", "step", 1, started_at=at(0)),
        entry("both/a/pay", "step", 2, started_at=at(0)),
        entry("both/b/ship", "step", 4, started_at=at(1)),
        entry("after", "step", 5, started_at=at(4)),
    ]
    assert tree(*recorded) == [
        "- both", "  - b", "    step pay", "    step ship", "  - a", "    step pay", "step after",
    ]  # fmt: skip
    summed = the_row(rows(RUN, recorded), "both")
    assert (summed.at, summed.took, summed.what) == ("+0.0 s", "4.0 s", "")


def test_a_loop_holds_its_iterations_and_tells_its_value():
    recorded = [
        entry("poll", "loop", 3, mark="~20", value=7),
        entry("poll[20]/fetch", "step", 5, started_at=at(4)),
        entry("poll[21]/fetch", "step", 6, started_at=at(5)),
        entry("poll", "loop", 7, value="found"),
    ]
    assert tree(*recorded) == [
        "loop poll", "  loop poll (before [20])", "  - [20]", "    step fetch", "  - [21]", "    step fetch",
    ]  # fmt: skip
    assert the_row(rows(RUN, recorded), "poll").what == '"found"'


def test_a_loop_that_still_runs_is_summed_up():
    assert tree(entry("poll", "loop", 3, mark="~20"), entry("poll[20]/fetch", "step", 5)) == [
        "- poll", "  loop poll (before [20])", "  - [20]", "    step fetch",
    ]  # fmt: skip


def test_scopes_in_scopes_are_shown_as_deep():
    assert tree(entry("poll[0]/both/a/items/3/charge#2", "step", 1)) == [
        "- poll", "  - [0]", "    - both", "      - a", "        - items", "          - 3", "            step charge#2",
    ]  # fmt: skip


def test_names_are_shown_as_they_were_written():
    assert tree(entry("a%2Fb/c%5Bd%5D", "step", 1)) == ["- a/b", "  step c[d]"]
    assert [row.name for row in lines(RUN, [entry("a%2Fb/c", "step", 1)])] == ["a/b/c"]


def test_an_undo_stands_outside_of_the_scope_of_its_step():
    failure = {"type": "ValueError", "message": "gone"}
    recorded = [
        entry("both/a/book", "step", 1, value="b-1"),
        entry("both/a/book", "step", 2, mark="!@1", error=failure, retry_at=at(3)),
        entry("both/a/book", "step", 4, mark="!"),
    ]
    assert tree(*recorded) == [
        "- both", "  - a", "    step book", "undo both/a/book (attempt 1)", "undo both/a/book",
    ]  # fmt: skip
    last = rows(RUN, recorded)[-1]
    assert (last.what, last.failed) == ("undone", False)
    failed = rows(RUN, [entry("book", "step", 4, mark="!", error=failure)])[0]
    assert (failed.what, failed.failed) == ("ValueError: gone", True)


def test_a_cancellation_tells_what_it_ended():
    [row] = rows(RUN, [entry("cancel", "cancel", 4, mark="^", value=["sleep", "both/a/wait"])])
    assert (row.kind, row.name, row.took, row.what) == ("cancel", "cancel", "", "ends sleep, both/a/wait")


def test_an_update_and_its_answer_are_one_thing():
    message = {"id": "u", "name": "rename", "kind": "update", "body": "ada"}
    taken = entry("rename", "wait", 3, messages=[message])
    answer = {"id": "u", "value": 3, "rejected": None}
    recorded = [taken, entry("rename/answer", "update", 4, value=answer)]
    assert tree(*recorded) == ["update rename", "  answer answer"]
    assert [row.what for row in rows(RUN, recorded)] == ['"ada"', "3"]
    refused = entry("rename/answer", "update", 4, value={"id": "u", "value": None, "rejected": "it is taken"})
    assert rows(RUN, [taken, refused])[1].what == "rejected: it is taken"


def test_what_people_decide_is_told_in_words():
    decision = {"decision": "approved", "reviewer": "ann", "comment": "fine", "sections": []}
    passed = entry("last", "wait", 5, messages=[{"id": "c", "name": "last", "kind": "continue", "body": None}])
    found = rows(RUN, [entry("expense", "review", 4, value=decision), passed])
    assert [(row.kind, row.what) for row in found] == [
        ("review", "approved by ann: fine"),
        ("breakpoint", "continued"),
    ]


def test_moments_take_no_time():
    found = rows(RUN, [entry("version:pricing", "version", 2, value=3), entry("handed over", "checkpoint", 4)])
    assert [(row.kind, row.name, row.at, row.took, row.what) for row in found] == [
        ("version", "pricing", "+2.0 s", "", "3"),
        ("checkpoint", "handed over", "+4.0 s", "", ""),
    ]


def test_waits_in_branches_began_when_the_join_did():
    found = rows(RUN, [
        entry("first", "step", 2, started_at=at(0)),
        entry("both/a/sleep", "sleep", 5),
        entry("both/b/nap", "sleep", 9),
        entry("both/b/doze", "sleep", 10),
        entry("rest", "sleep", 12),
    ])  # fmt: skip
    began = {row.name: (row.at, row.took) for row in found if row.kind == "sleep"}
    assert began == {
        "sleep": ("+2.0 s", "3.0 s"),
        "nap": ("+2.0 s", "7.0 s"),
        "doze": ("+9.0 s", "1.0 s"),
        "rest": ("+10.0 s", "2.0 s"),
    }


def test_waits_in_iterations_began_when_the_iteration_before_had_ended():
    found = rows(RUN, [entry(f"poll[{i}]/sleep", "sleep", 3 * (i + 1)) for i in range(3)])
    assert [(row.at, row.took) for row in found if row.kind == "sleep"] == [
        ("+0.0 s", "3.0 s"),
        ("+3.0 s", "3.0 s"),
        ("+6.0 s", "3.0 s"),
    ]


def test_lines_are_in_order_of_record_with_the_whole_location():
    recorded = [entry("both/b/x", "step", 1), entry("both/a/x", "step", 2), entry("both/b/y", "step", 3)]
    assert [(row.name, row.depth) for row in lines(RUN, recorded)] == [
        ("both/b/x", 0),
        ("both/a/x", 0),
        ("both/b/y", 0),
    ]


def test_a_run_that_rolls_back_says_what_it_will_be():
    page = text({**RUN, "status": "rolling_back", "ending": "timed_out", "reason": "the run reached its timeout"}, [])
    assert "rolling back: the run reached its timeout" in page
    assert "will then be timed_out" in page


def test_a_run_that_is_asked_to_end_or_has_a_deadline_says_so():
    page = text({**RUN, "cancel_requested": "graceful", "deadline": at(900)}, [])
    assert "is asked to end graceful" in page
    assert f"times out at {at(900)}" in page


def test_a_reason_that_is_the_error_is_said_once():
    error = {"type": "shop.Declined", "message": "no funds"}
    failed = {**RUN, "status": "failed", "error": error, "reason": "Declined: no funds", "finished_at": at(1)}
    assert text(failed, []).count("no funds") == 1
    kept = text({**failed, "reason": "Declined: no funds NOT UNDONE, see to it by hand: book"}, [])
    assert "NOT UNDONE" in kept
