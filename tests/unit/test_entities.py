"""What can be registered as an entity, and what its runs are called."""

from typing import Any, Self

import pytest
from pydantic import BaseModel, Field, computed_field, field_serializer, field_validator, model_validator

from durable import App, Context, InvalidName
from durable.context.entities import serving
from durable.entities import definition_of
from durable.model.entity import NAME_CHARS, entity_run_id
from durable.model.ids import check_new_run_id


class Common(BaseModel):
    """What entities may have in common."""

    opened: bool = False

    def open(self) -> None:
        self.opened = True


def registered(cls: Any, **options: Any) -> Any:
    return definition_of(App("entities").entity(**options)(cls))


def test_public_methods_are_operations_and_nothing_else_is() -> None:
    class Cart(Common):
        items: list[str] = []

        @field_validator("items")
        @classmethod
        def no_blanks(cls, value: list[str]) -> list[str]:
            return value

        @model_validator(mode="after")
        def whole(self) -> Self:
            return self

        @field_serializer("items")
        def plainly(self, value: list[str]) -> list[str]:
            return value

        @computed_field
        @property
        def size(self) -> int:
            return len(self.items)

        @staticmethod
        def helper() -> int:
            return 1

        @classmethod
        def made(cls) -> Self:
            return cls()

        def model_post_init(self, context: Any, /) -> None: ...

        def _hidden(self) -> None: ...

        def add(self, ctx: Context, sku: str, *more: str, n: int = 1, **rest: int) -> list[str]:
            return self.items

    definition = registered(Cart)
    assert set(definition.operations) == {"add", "open"}
    add = definition.operations["add"]
    assert (add.title, add.takes_context, add.result) == ("Cart.add", True, list[str])
    given = add.arguments(("a", "b", "c"), {"n": 2, "x": 3})
    assert given == {"args": ["a", "b", "c"], "kwargs": {"n": 2, "x": 3}}
    assert add.given(given) == (["a", "b", "c"], {"n": 2, "x": 3})
    assert not definition.operations["open"].takes_context


def copies() -> Any:
    class Cart(BaseModel):
        def copy(self) -> None: ...  # type: ignore[override]

    return Cart


def validates() -> Any:
    class Cart(BaseModel):
        def validate(self) -> None: ...  # type: ignore[override]

    return Cart


def models() -> Any:
    class Cart(BaseModel):
        def model_price(self) -> None: ...

    return Cart


def demands() -> Any:
    class Cart(BaseModel):
        owner: str
        items: list[str] = Field(default_factory=list[str])

    return Cart


def generates() -> Any:
    class Cart(BaseModel):
        def pages(self) -> Any:
            yield 1

    return Cart


def late_context() -> Any:
    class Cart(BaseModel):
        def add(self, sku: str, ctx: Context) -> None: ...

    return Cart


def plain() -> Any:
    class Cart: ...

    return Cart


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (copies, r"operation .*Cart.copy hides pydantic's own BaseModel.copy: give it another name"),
        (validates, r"Cart.validate hides pydantic's own"),
        (models, r"pydantic keeps names that begin with model_"),
        (demands, r"Cart needs a default for every field.*: owner: Field required"),
        (generates, r"operation Cart.pages is a generator"),
        (late_context, r"operation Cart.add: the context comes right after self"),
        (plain, r"Cart must be a class that derives from pydantic's BaseModel"),
    ],
)
def test_what_cannot_be_an_entity_is_refused_when_it_is_registered(make: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        registered(make())


def test_a_class_is_given_back_and_registered_once() -> None:
    class Cart(BaseModel):
        n: int = 0

    app = App("entities")
    assert app.entity(Cart) is Cart
    assert app.newest("entity:Cart").version == "1"
    with pytest.raises(ValueError, match="registered twice"):
        app.entity(name="Other")(Cart)
    with pytest.raises(TypeError, match="is no entity: register its class"):
        definition_of(Common)


@pytest.mark.parametrize(
    "options", [{"version": 0}, {"version": True}, {"name": "a:b"}, {"name": "x" * (NAME_CHARS + 1)}]
)
def test_names_and_versions_are_checked(options: Any) -> None:
    class Cart(BaseModel): ...

    with pytest.raises(ValueError, match=r"version|entity name"):
        registered(Cart, **options)


def test_every_key_has_a_run_of_its_own() -> None:
    keys = ["a", "a.b", "a~2", "+a", "ä", "a b", "k" * 200, "k" * 201, "a:b"]
    ids = [entity_run_id("Cart", key) for key in keys]
    assert ids[:2] == ["entity:Cart:a", "entity:Cart:a.b"]
    assert len(set(ids)) == len(keys)
    assert max(map(len, ids)) <= 128
    assert entity_run_id("x" * NAME_CHARS, "k" * 256).startswith("entity:")


def test_nobody_else_can_have_such_an_id() -> None:
    with pytest.raises(InvalidName, match="it belongs to entities"):
        check_new_run_id("entity:Cart:a")


def test_the_code_of_an_entity_is_a_workflow_over_its_key() -> None:
    class Cart(BaseModel): ...

    assert serving(registered(Cart)).__name__ == "entity"
