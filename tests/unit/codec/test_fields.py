"""What may be asked of a payload before there is one."""

from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import pytest
from pydantic import AliasChoices, BaseModel, Field
from typing_extensions import TypedDict

from durable.codec import UNTYPED
from durable.codec.fields import fields_of, mapping_values

T = TypeVar("T")


class Customer(TypedDict):
    id: str


@dataclass
class Line:
    sku: str
    amount: "int"


class Order(BaseModel):
    id: str
    buyer: Customer = Field(validation_alias=AliasChoices("buyer", "customer"))
    line: Line = Field(alias="theLine")


class Box(BaseModel, Generic[T]):
    content: T


class Other(BaseModel):
    id: int


def names(type_: Any) -> dict[str, tuple[str, ...]]:
    fields = fields_of(type_)
    assert fields is not None
    return {name: field.names for name, field in fields.items()}


def test_a_model_has_its_fields_under_all_their_names() -> None:
    assert names(Order) == {
        "id": ("id",),
        "buyer": ("buyer", "customer"),
        "customer": ("buyer", "customer"),
        "line": ("line", "theLine"),
        "theLine": ("line", "theLine"),
    }


def test_fields_have_their_types() -> None:
    fields = fields_of(Order)
    assert fields is not None
    assert names(fields["customer"].type) == {"id": ("id",)}
    line = fields_of(fields["line"].type)
    assert line is not None
    assert line["amount"].type is int
    box = fields_of(Box[Line])
    assert box is not None
    assert names(box["content"].type) == {"sku": ("sku",), "amount": ("amount",)}


@pytest.mark.parametrize("type_", [Annotated[Line, "note"], Line | None])
def test_what_stands_around_a_type_is_looked_through(type_: Any) -> None:
    assert names(type_) == {"sku": ("sku",), "amount": ("amount",)}


def test_a_union_has_the_fields_of_its_members() -> None:
    assert names(Order | Other | Line).keys() == {"id", "buyer", "customer", "line", "theLine", "sku", "amount"}
    assert fields_of(Order | dict[str, int]) is None


@pytest.mark.parametrize("type_", [UNTYPED, Any, object, dict, dict[str, int]])
def test_of_what_says_nothing_anything_may_be_asked(type_: Any) -> None:
    assert fields_of(type_) is None


@pytest.mark.parametrize("type_", [str, int, list[Line], None, type(None)])
def test_other_types_have_no_fields(type_: Any) -> None:
    assert fields_of(type_) == {}


def test_a_dict_says_what_it_holds() -> None:
    assert mapping_values(dict[str, int]) is int
    assert mapping_values(dict) is UNTYPED
    assert mapping_values(UNTYPED) is UNTYPED
