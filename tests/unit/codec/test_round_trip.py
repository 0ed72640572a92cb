"""A value comes back from storage as it is, or is refused with the place where it would not."""

import dataclasses
import enum
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr, computed_field
from typing_extensions import TypedDict

from durable import codec
from durable.codec import UNTYPED
from durable.errors import InvalidInput, LimitExceeded, NotStorable


class Colour(enum.StrEnum):
    RED = "red"


class Animal(BaseModel):
    name: str


class Dog(Animal):
    bark: str


class Cat(BaseModel):
    name: str


class Nested(BaseModel):
    animals: list[Animal]
    by_name: dict[str, Any] = {}


class Aliased(BaseModel):
    order_id: str = Field(alias="orderId")
    total: int = Field(validation_alias="TOTAL", serialization_alias="sum")


class Computed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    width: int

    @computed_field
    @property
    def area(self) -> int:
        return self.width**2


class Private(BaseModel):
    shown: int
    _hidden: int = PrivateAttr(default=0)


class Excluded(BaseModel):
    shown: int
    left_out: int = Field(default=0, exclude=True)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Secret(BaseModel):
    key: SecretStr


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Pair(NamedTuple):
    left: int
    right: str


class Row(TypedDict):
    id: int


class Connection:
    pass


class Tagged(BaseModel):
    kind: Literal["tagged"] = "tagged"


NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (None, None),
        (True, bool),
        (3, int),
        (2**80, int),
        (1.5, float),
        (float("inf"), float),
        ("a\u2028ü\x00", str),
        (b"\xff\x00", bytes),
        ([1, [2]], list[Any]),
        ((1, "a"), tuple[int, str]),
        ({1: "a"}, dict[int, str]),
        ({1, 2}, set[int]),
        (frozenset({1}), frozenset[int]),
        (Colour.RED, Colour),
        (Decimal("1.10"), Decimal),
        (UUID(int=5), UUID),
        (NOW, datetime),
        (date(2026, 1, 2), date),
        (timedelta(days=1, microseconds=3), timedelta),
        (PurePosixPath("/a"), PurePosixPath),
        (Point(1, 2.5), Point),
        (Pair(1, "a"), Pair),
        ({"id": 3}, Row),
        (Dog(name="rex", bark="wuff"), Dog),
        (Dog(name="rex", bark="wuff"), Dog | Cat),
        (None, Dog | None),
        (Nested(animals=[Animal(name="a")], by_name={"x": [1, None]}), Nested),
        (Aliased.model_validate({"orderId": "o", "TOTAL": 3}), Aliased),
        (Computed(width=3), Computed),
        (Private(shown=3), Private),
        (Open.model_validate({"more": [1]}), Open),
        (Tagged(), Annotated[Tagged | Animal, Field()]),
    ],
)
def test_a_value_comes_back_with_its_type(value, type_) -> None:
    text, read = codec.round_trip(value, type_)
    assert read == value
    assert type(read) is type(value)
    assert codec.decode(text, type_) == value
    json.loads(text)


def test_not_a_number_comes_back_as_not_a_number() -> None:
    _, read = codec.round_trip([float("nan")], list[float])
    assert read[0] != read[0]


def test_a_whole_number_is_kept_where_a_float_is_declared() -> None:
    _, read = codec.round_trip({"a": 1}, dict[str, float])
    assert type(read["a"]) is float


def private(hidden: int) -> Private:
    model = Private(shown=1)
    model._hidden = hidden
    return model


@pytest.mark.parametrize(
    ("value", "type_", "place"),
    [
        (Dog(name="rex", bark="wuff"), Animal, "it is a .*Dog and would be read back as .*Animal; bark would be lost"),
        (Nested(animals=[Dog(name="r", bark="w")]), Nested, r"animals\[0\] is a .*Dog"),
        (Nested(animals=[], by_name={"x": {"y": Point(1)}}), Nested, r"by_name\.x\.y is a .*Point"),
        (Cat(name="tom"), Animal | Cat, "it is a .*Cat and would be read back as .*Animal"),
        (Colour.RED, str, "it is a .*Colour"),
        ([True], list[int], r"\[0\] is a bool"),
        ({"a": (1, 2)}, dict[str, Any], "a is a tuple and would be read back as list"),
        (private(3), Private, "would not be read back equal"),
        (Excluded(shown=1, left_out=2), Excluded, "left_out is a int|left_out would not be read back equal"),
        (Secret(key=SecretStr("x")), Secret, "key"),
        ("3", int, "as int: "),
        ({"rows": [1, {"conn": Connection()}]}, dict[str, Any], r"rows\[1\]\.conn is a .*Connection"),
        ({"rows": [1, {"conn": Connection()}]}, UNTYPED, r"rows\[1\]\.conn is a .*Connection"),
        (Animal(name="a"), UNTYPED, r"it is a .*Animal and nothing declares a type .*Step\(result=Animal\)"),
        ([NOW], UNTYPED, r"\[0\] is a datetime.datetime and nothing declares"),
        ((1, 2), UNTYPED, "it is a tuple"),
        ({1: 2}, UNTYPED, "keys that are no texts"),
        ([float("nan")], UNTYPED, r"\[0\] is nan, which JSON cannot hold"),
        ("\ud800", str, "UTF-8"),
        ({"a": "\ud800"}, UNTYPED, "a is a text that UTF-8 cannot hold"),
    ],
)
def test_what_would_change_is_refused_with_its_place(value, type_, place) -> None:
    with pytest.raises(NotStorable, match=place) as caught:
        codec.encode(value, type_, what='the result of step "load"')
    assert str(caught.value).startswith('the result of step "load" cannot be stored')


def test_a_type_that_nothing_encodes_is_refused() -> None:
    with pytest.raises(NotStorable, match=r"values of type .*Connection.* cannot be stored: Unable to generate"):
        codec.encode(Connection(), Connection)


@pytest.mark.parametrize("type_", [str, list[int]])
def test_none_where_there_should_be_a_value_hints_at_the_missing_return(type_) -> None:
    with pytest.raises(NotStorable, match=r"it is None \(a missing return\?\)"):
        codec.encode(None, type_)


def test_a_refusal_does_not_show_the_value() -> None:
    with pytest.raises(NotStorable) as caught:
        codec.encode("hunter2", int)
    assert "hunter2" not in str(caught.value)


def test_too_large_a_value_is_refused_with_its_size() -> None:
    codec.encode("x" * 262_142, str, limit=262_144)
    with pytest.raises(LimitExceeded, match="262,145 bytes; the limit is 262,144 bytes"):
        codec.encode("x" * 262_143, str, limit=262_144)
    with pytest.raises(LimitExceeded):
        codec.encode("ü" * 140_000, UNTYPED, limit=262_144)


def test_unions_of_the_same_members_in_another_order_are_told_apart() -> None:
    first, second = Animal | Cat, Cat | Animal
    assert type(codec.decode('{"name": "x"}', first)) is Animal
    assert type(codec.decode('{"name": "x"}', second)) is Cat


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(plain)
def test_every_plain_value_comes_back(value) -> None:
    text, read = codec.round_trip(value, UNTYPED)
    assert read == value
    assert codec.decode(text, UNTYPED) == value


def test_values_from_callers_are_read_by_name_and_by_alias() -> None:
    wanted = Aliased.model_validate({"orderId": "o", "TOTAL": 3})
    assert codec.validated({"orderId": "o", "TOTAL": 3}, Aliased, what="input") == wanted
    assert codec.parsed('{"order_id": "o", "total": 3}', Aliased, what="input") == wanted


@pytest.mark.parametrize("text", ['{"animals": [{"name": 3}]}', '{"animals": [{}]}', "{", "NaN", ""])
def test_bad_json_from_callers_is_refused_with_the_reason(text) -> None:
    with pytest.raises(InvalidInput, match="the input: ") as caught:
        codec.parsed(text, Nested, what="the input")
    assert "pydantic.dev" not in str(caught.value)


def test_the_reason_names_the_place_and_stops_after_a_few() -> None:
    with pytest.raises(InvalidInput, match=r"animals\[0\]\.name: .*; and 3 more"):
        codec.validated({"animals": [{"name": n} for n in range(8)]}, Nested, what="the input")


@pytest.mark.parametrize("text", ["{", "NaN"])
def test_untyped_json_from_callers_must_be_json(text) -> None:
    with pytest.raises(InvalidInput):
        codec.parsed(text, UNTYPED, what="the body")


def test_the_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert codec.digest('{"a":1,"b":[1,2]}') == codec.digest('{"b":[1,2],"a":1}')
    assert codec.digest('{"a":1}') != codec.digest('{"a":2}')
    assert not codec.digest(None)
