"""What is recorded of how a step is undone, and the call that comes of it."""

import shutil
import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from durable.errors import LimitExceeded, NotStorable, UndecodableHistory
from durable.model.entry import Compensation, Entry
from durable.model.limits import BLOB_BYTES
from durable.model.packages import Packages
from durable.ops.undo import UndoMissing, UndoRefused, call_of, check_own_undo, check_undo, compensation_of

OURS = Packages([__name__])


@dataclass(frozen=True)
class Seat:
    row: int


class Desk:
    @staticmethod
    def close(result: str) -> None: ...


def release(result: Seat, seat: Seat, *, why: Seat | None = None) -> Any:
    return result, seat, why


def untyped(result, value):
    return result, value


def many(result: Seat, *seats: Seat, **named: Seat) -> Any:
    return result, seats, named


def entry(value: str | None) -> Entry:
    return Entry(location="seat", kind="step", epoch=1, n=1, at=0.0, value=value)


def called(undo: Any, value: str, *args: Any, **kwargs: Any) -> Any:
    return call_of(entry(value), compensation_of(undo, args, kwargs), OURS)()


def test_arguments_come_back_as_the_undo_declares_them() -> None:
    assert called(release, '{"row": 7}', Seat(1), why=Seat(2)) == (Seat(7), Seat(1), Seat(2))


def test_without_annotations_they_are_plain_json() -> None:
    assert called(untyped, '{"row": 7}', [1, "a"]) == ({"row": 7}, [1, "a"])
    with pytest.raises(NotStorable, match="argument 1 of untyped"):
        compensation_of(untyped, (Seat(1),), {})


def test_stars_take_the_annotation_of_each() -> None:
    assert called(many, '{"row": 0}', Seat(1), Seat(2), a=Seat(3)) == (Seat(0), (Seat(1), Seat(2)), {"a": Seat(3)})


def test_the_record_names_the_function_and_is_json() -> None:
    assert compensation_of(release, (Seat(1),), {"why": None}) == Compensation(
        f"{__name__}:release", '{"args":[{"row":1}],"kwargs":{"why":null}}'
    )


def test_too_much_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="Let the undo read what it needs by an id"):
        compensation_of(untyped, ("x" * (BLOB_BYTES - 10),), {})


@pytest.mark.parametrize("undo", [lambda result: None, partial(untyped, value=1), Desk(), [].append])
def test_what_a_rollback_would_not_find_is_refused(undo: Any) -> None:
    with pytest.raises(TypeError, match="takes a function of a module"):
        check_undo(undo, (), {})


def test_a_static_method_is_found() -> None:
    check_undo(Desk.close, (), {})


def test_a_signature_that_does_not_fit_is_refused() -> None:
    with pytest.raises(TypeError, match="must take the step's result and then the step's arguments"):
        check_undo(release, (), {})


@pytest.mark.parametrize("reference", [f"{__name__}.no:fn", f"{__name__}:gone", f"{__name__}:Desk.gone", __name__])
def test_a_function_that_is_gone_needs_other_code(reference: str) -> None:
    with pytest.raises(UndoMissing, match="which the deployed code does not have"):
        call_of(entry("1"), Compensation(reference, '{"args":[],"kwargs":{}}'), OURS)


@pytest.mark.parametrize("value", ['{"row": "x"}', '{"seat": 1}'])
def test_a_result_that_does_not_fit_any_more_needs_other_code(value: str) -> None:
    with pytest.raises(UndecodableHistory, match="the arguments of"):
        call_of(entry(value), compensation_of(release, (Seat(1),), {}), OURS)


def test_an_argument_that_the_function_takes_no_more_needs_other_code() -> None:
    with pytest.raises(UndecodableHistory):
        call_of(entry("null"), Compensation(f"{__name__}:untyped", '{"args":[1,2],"kwargs":{}}'), OURS)


@pytest.mark.parametrize(
    "reference",
    [
        "os:system",
        "subprocess:run",
        "builtins:eval",
        "no.such.module:fn",
        "",
        ":",
        f"{__name__}:pytest.exit",
        f"{__name__}:Any",
    ],
)
def test_a_record_that_names_a_function_of_others_is_refused(reference: str) -> None:
    with pytest.raises(UndoRefused, match="own packages"):
        call_of(entry("1"), Compensation(reference, '{"args":[],"kwargs":{}}'), OURS)


def test_the_module_that_such_a_record_names_is_not_even_imported() -> None:
    assert "antigravity" not in sys.modules
    with pytest.raises(UndoRefused):
        call_of(entry("1"), Compensation("antigravity:fly", '{"args":[],"kwargs":{}}'), OURS)
    assert "antigravity" not in sys.modules


def test_an_undo_that_a_rollback_would_refuse_is_refused_when_the_step_is_called() -> None:
    check_own_undo(release, OURS)
    check_own_undo(shutil.rmtree, Packages(["shutil"]))
    with pytest.raises(TypeError, match="Wrap it in a function beside the workflow"):
        check_own_undo(shutil.rmtree, OURS)
