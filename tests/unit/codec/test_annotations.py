"""The declared type of a result is found wherever Python lets it be written."""

import functools
import json
import subprocess
from collections.abc import Awaitable, Coroutine
from typing import Any, Generic, NoReturn, TypeVar

import pytest
from pydantic import BaseModel

from durable import codec
from durable.codec import UNTYPED

T = TypeVar("T")


class Receipt(BaseModel):
    id: str


def plain(order: str, amount: int = 1) -> Receipt: ...
async def waiting(order: str) -> Receipt: ...
def promising(order: str) -> Awaitable[Receipt]: ...
def coroutine(order: str) -> Coroutine[Any, Any, Receipt]: ...
def as_text(order: str) -> "Receipt": ...
def inside_text(order: str) -> "list[Receipt | None]": ...
def nested_text(order: str) -> list["Receipt"]: ...
def no_value(order: str) -> None: ...
def says_nothing(order: str): ...
def says_any(order: str) -> Any: ...
def says_object(order: str) -> object: ...
def never(order: str) -> NoReturn: ...
def generic(order: T) -> T: ...
def generic_list(order: T) -> list[T]: ...


def decorated(fn):
    @functools.wraps(fn)
    def call(*args, **kwargs):
        return fn(*args, **kwargs)

    return call


class Service:
    def pay(self, order: str) -> Receipt: ...
    @classmethod
    def create(cls, order: str) -> Receipt: ...
    @staticmethod
    def check(order: str) -> Receipt: ...
    def __call__(self, order: str) -> Receipt: ...


class Untouched(Generic[T]):
    def get(self) -> T: ...


@pytest.mark.parametrize(
    ("fn", "declared"),
    [
        (plain, Receipt),
        (waiting, Receipt),
        (promising, Receipt),
        (coroutine, Receipt),
        (as_text, Receipt),
        (inside_text, list[Receipt | None]),
        (nested_text, list[Receipt]),
        (no_value, type(None)),
        (functools.partial(plain, amount=2), Receipt),
        (functools.partial(functools.partial(waiting), "o"), Receipt),
        (decorated(as_text), Receipt),
        (Service().pay, Receipt),
        (functools.partial(Service().pay, "o"), Receipt),
        (Service.create, Receipt),
        (Service.check, Receipt),
        (Service(), Receipt),
        (Receipt, Receipt),
        (dict, dict),
        (says_nothing, UNTYPED),
        (says_any, UNTYPED),
        (says_object, UNTYPED),
        (never, UNTYPED),
        (generic, UNTYPED),
        (generic_list, UNTYPED),
        (Untouched().get, UNTYPED),
        (lambda: 3, UNTYPED),
        (len, UNTYPED),
        (json.dumps, UNTYPED),
        (subprocess.run, UNTYPED),
        (object, UNTYPED),
    ],
)
def test_the_declared_result_is_found(fn, declared) -> None:
    assert codec.return_type(fn) == declared
    assert codec.return_type(fn) == declared  # the second time from what was kept


def test_a_text_may_name_what_the_closure_holds() -> None:
    class Local(BaseModel):
        id: str

    def make() -> "Local":
        return Local(id="x")

    assert codec.return_type(make) is Local


def test_an_unknown_name_is_refused_with_what_to_do() -> None:
    def make() -> "Nowhere":  # noqa: F821 # pyright: ignore[reportUndefinedVariable]
        ...

    with pytest.raises(TypeError, match=r"'Nowhere' \(return\) of .*make cannot be resolved.*at module level"):
        codec.return_type(make)


def test_other_annotations_need_not_be_known() -> None:
    def make(order: "OnlyForTheChecker") -> int:  # noqa: F821 # pyright: ignore[reportUndefinedVariable]
        ...

    assert codec.return_type(make) is int


def test_the_input_is_the_parameter_after_the_context() -> None:
    async def workflow(ctx, order: "Receipt"): ...
    async def untyped(ctx, order): ...

    assert codec.input_type(workflow) is Receipt
    assert codec.input_type(untyped) is UNTYPED


@pytest.mark.parametrize(
    ("fn", "name"),
    [
        (plain, "plain"),
        (functools.partial(plain, "o"), "plain"),
        (Service().pay, "Service.pay"),
        (Service(), "Service.__call__"),
        (Receipt, "Receipt"),
    ],
)
def test_callables_are_named_after_their_function(fn, name) -> None:
    assert codec.callable_name(fn) == name
