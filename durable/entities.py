"""What `@app.entity` makes of a class: its operations with their types, its version, and how its state is kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic_core import from_json, to_json
from typing_extensions import TypeIs

from durable import codec
from durable.errors import UndecodableHistory, UnknownEntityVersion
from durable.model.entity import READ, Held, check_entity_name, entity_run_id, workflow_of
from durable.model.envelope import StartSpec

VERSION_OF_WORKFLOW: Final = "1"
"""Versions of an entity are versions of its state; the workflow around it has its own, which does not change."""

_MARK: Final = "__durable_entity__"
"""Where a class keeps what it was registered as."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EntityOperation:
    """A method that can be asked for."""

    entity: str
    name: str
    fn: Callable[..., Any]
    takes_context: bool
    parameters: Mapping[str, inspect.Parameter]
    """Those that the caller gives."""
    types: Mapping[str, Any]
    result: Any

    @property
    def title(self) -> str:
        """As an author writes it: `Cart.add`."""
        return f"{self.entity}.{self.name}"

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What a call is given, as JSON data, after it was checked.

        Raises:
            TypeError: There are too many, too few, or others.
            InvalidInput: One does not fit its annotation.
            NotStorable: One would not come back as it is.
        """
        try:
            inspect.Signature([*self.parameters.values()]).bind(*args, **kwargs)
        except TypeError as problem:
            raise TypeError(f"{self.title}(): {problem}") from None
        positional = [self._data(name, value) for name, value in zip(self._places(args), args, strict=True)]
        return {"args": positional, "kwargs": {name: self._data(name, value) for name, value in kwargs.items()}}

    def given(self, arguments: Any) -> tuple[list[Any], dict[str, Any]]:
        """The values of such data, by the annotations that the method has now.

        Raises:
            ValueError, TypeError, LookupError: The method takes other arguments.
        """
        args, kwargs = arguments["args"], arguments["kwargs"]
        inspect.Signature([*self.parameters.values()]).bind(*args, **kwargs)
        positional = [self._value(name, data) for name, data in zip(self._places(args), args, strict=True)]
        return positional, {name: self._value(name, data) for name, data in kwargs.items()}

    def _places(self, args: Sequence[Any]) -> list[str]:
        """The parameter of each positional argument."""
        names: list[str] = []
        for parameter in self.parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                return names + [parameter.name] * (len(args) - len(names))
            if len(names) < len(args):
                names.append(parameter.name)
        return names

    def _type(self, name: str) -> Any:
        if name in self.types:
            return self.types[name]
        rest = next(p.name for p in self.parameters.values() if p.kind is p.VAR_KEYWORD)
        return self.types[rest]

    def _data(self, name: str, value: object) -> Any:
        type_, what = self._type(name), f"argument {name} of {self.title}"
        return from_json(codec.encode(codec.validated(value, type_, what=what), type_, what=what))

    def _value(self, name: str, data: Any) -> Any:
        return codec.decode(to_json(data).decode(), self._type(name))


@dataclass(frozen=True, eq=False, kw_only=True)
class EntityDefinition:
    """A registered entity."""

    name: str
    cls: type[BaseModel]
    version: int
    migrate: Callable[[Any], Any] | None
    operations: Mapping[str, EntityOperation]

    def run_id(self, key: str) -> str:
        """The run that holds the entity of this key; raises InvalidName for a key that none can have."""
        return entity_run_id(self.name, key)

    def start(self, key: str, headers: Mapping[str, str]) -> StartSpec:
        """How that run begins."""
        return StartSpec(
            workflow=workflow_of(self.name), version=VERSION_OF_WORKFLOW, input=codec.encode(key, str), headers=headers
        )

    def operation(self, method: object) -> EntityOperation:
        """The operation that an author means by `Cart.add`."""
        found = self.operations.get(str(getattr(method, "__name__", "")))
        if found is not None and found.fn is method:
            return found
        shown = getattr(method, "__qualname__", repr(method))
        known = ", ".join(operation.title for operation in self.operations.values()) or "none"
        raise TypeError(f"{shown} is no operation of entity {self.name}; it has: {known}")

    def first(self) -> Held:
        """What an entity holds before its first operation."""
        return Held(version=self.version, state=self.data(self.cls()))

    def model(self, held: Held) -> BaseModel:
        """The state as the class has it now.

        Raises:
            UnknownEntityVersion: It was kept by a later version of the class.
            UndecodableHistory: It does not fit.
        """
        if held.version > self.version:
            raise UnknownEntityVersion(self.name, held.version, self.version)
        where = f"the state of entity {self.name} (version {held.version})"
        try:
            if held.version < self.version and self.migrate is not None:
                return self.cls.model_validate(self.migrate(held.state))
            return cast("BaseModel", codec.decode(held.state_text, self.cls))
        except Exception as problem:  # noqa: BLE001 - the author's migrate may raise anything
            reason = codec.reason_of(problem) if isinstance(problem, ValueError) else repr(problem)
            raise UndecodableHistory(where, codec.type_name(self.cls), reason) from None

    def data(self, model: BaseModel) -> Any:
        """The state as it is kept, JSON data; raises NotStorable where it would not come back as it is."""
        return from_json(codec.encode(model, self.cls, what=f"the state of entity {self.name}"))

    def result_of(self, operation: str) -> Any:
        """The type of what the operation gives."""
        if operation == READ:
            return self.cls
        found = self.operations.get(operation)
        return codec.UNTYPED if found is None else found.result


def definition_of(cls: object) -> EntityDefinition:
    """What the class was registered as."""
    found = cls.__dict__.get(_MARK) if isinstance(cls, type) else None
    if not isinstance(found, EntityDefinition):
        raise TypeError(f"{_shown(cls)} is no entity: register its class with @app.entity")
    return found


def define(
    cls: Any, *, name: str | None, version: int, migrate: Callable[[Any], Any] | None, names: Mapping[str, Any]
) -> EntityDefinition:
    """Reads the class and marks it.

    Raises:
        TypeError: It is no model with defaults, or a method cannot be an operation.
        ValueError: It is registered already, or the version is no number from 1 on.
    """
    if not _is_model(cls):
        raise TypeError(
            f"entity {_shown(cls)} must be a class that derives from pydantic's BaseModel: its fields are the state"
        )
    if isinstance(version, bool) or version < 1:
        raise ValueError(f"@app.entity(version=...) counts from 1 on, not {version!r}")
    if _MARK in cls.__dict__:
        raise ValueError(f"entity {cls.__qualname__} is registered twice")
    title = check_entity_name(name or cls.__name__)
    _check_default(cls)
    definition = EntityDefinition(
        name=title,
        cls=cls,
        version=version,
        migrate=migrate,
        operations={method: _operation(title, method, fn, names) for method, fn in _methods(cls)},
    )
    setattr(cls, _MARK, definition)
    return definition


def _is_model(cls: object) -> TypeIs[type[BaseModel]]:
    return isinstance(cls, type) and issubclass(cls, BaseModel)


def _shown(cls: object) -> str:
    return str(getattr(cls, "__qualname__", repr(cls)))


def _check_default(cls: type[BaseModel]) -> None:
    try:
        cls()
    except ValueError as problem:
        raise TypeError(
            f"entity {cls.__qualname__} needs a default for every field, because an entity of any key is there from the "
            f"beginning: {codec.reason_of(problem)}"
        ) from None


def _methods(cls: type[BaseModel]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Public methods of the class and of those it derives from, up to pydantic's own."""
    decorators = cls.__pydantic_decorators__
    hooks = {name for kind in fields(decorators) for name in cast("dict[str, Any]", getattr(decorators, kind.name))}
    seen: set[str] = set()
    for owner in cls.__mro__[: cls.__mro__.index(BaseModel)]:
        for name, member in vars(owner).items():
            if name in seen or name.startswith("_") or not inspect.isfunction(member):
                continue
            seen.add(name)
            if name in hooks or name == "model_post_init":
                continue
            if hasattr(BaseModel, name):
                raise TypeError(
                    f"operation {cls.__qualname__}.{name} hides pydantic's own BaseModel.{name}: give it another name"
                )
            if name.startswith("model_"):
                raise TypeError(f"operation {cls.__qualname__}.{name}: pydantic keeps names that begin with model_")
            yield name, member


def _operation(entity: str, name: str, fn: Callable[..., Any], names: Mapping[str, Any]) -> EntityOperation:
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError(f"operation {entity}.{name} is a generator: an operation gives one value")
    parameters = list(inspect.signature(fn).parameters.values())
    takes_context = len(parameters) > 1 and _is_context(parameters[1])
    first = 2 if takes_context else 1
    own = parameters[first:]
    if not parameters or parameters[0].kind not in {
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    }:
        raise TypeError(f"operation {entity}.{name} takes no self")
    if any(_is_context(parameter) for parameter in own):
        raise TypeError(f"operation {entity}.{name}: the context comes right after self")
    return EntityOperation(
        entity=entity,
        name=name,
        fn=fn,
        takes_context=takes_context,
        parameters={parameter.name: parameter for parameter in own},
        types={p.name: codec.input_type(fn, after=place, names=names) for place, p in enumerate(own, first)},
        result=codec.return_type(fn, names=names),
    )


def _is_context(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    shown = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return parameter.name == "ctx" or shown.rpartition(".")[2] == "Context"
