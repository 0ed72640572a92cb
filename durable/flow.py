"""What an app says about how much goes on at a time: queues of remote steps, singletons, and the lanes they come down to."""

from __future__ import annotations

import json
import types
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typing_extensions import is_typeddict

from durable import codec
from durable.errors import InvalidInput, LimitExceeded
from durable.model.ids import check_name
from durable.model.lane import HOLDERS, LaneClaim, LaneRate, LaneSpec, Order, lane_name
from durable.options import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from durable.definitions import RemoteStep, Singleton, Workflow
    from durable.model.packages import Packages
    from durable.options import Rate

_NO_FIELDS: Final = (str, bytes, int, float, bool, type(None), list, tuple, set, frozenset)


class Registry(Protocol):
    """An app, as far as calls of remote steps and the undoing of steps need it."""

    packages: Packages

    @property
    def name(self) -> str: ...
    @property
    def remote_steps(self) -> Mapping[str, RemoteStep[..., Any]]: ...
    @property
    def queues(self) -> Mapping[str, FlowQueue]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowQueue:
    """How much a queue of remote steps does at a time: as a whole, or for each value of a key."""

    name: str
    concurrency: int | None = None
    rate: Rate | None = None
    key: str | None = None
    order: Order = "fifo"
    fair: bool = False
    """Whether the limits are for the whole queue, and shared fairly by the values of the key."""


def flow_queue(
    name: str, *, concurrency: int | None, rate: Rate | None, key: str | None, order: str, fairness: str | None
) -> FlowQueue:
    """A queue as an app declares it; raises ValueError where it contradicts itself."""
    check_name("queue name", name)
    what = f'app.queue("{name}")'
    if concurrency is None and rate is None:
        raise ValueError(f"{what} limits nothing: say concurrency=, rate= or both")
    if concurrency is not None:
        _check_slots(f"{what}: concurrency", concurrency)
    if order not in {"fifo", "lifo"}:
        raise ValueError(f'{what}: order must be "fifo" or "lifo", not {order!r}')
    if fairness not in {None, "key"}:
        raise ValueError(f'{what}: fairness must be "key", not {fairness!r}')
    if fairness and key is None:
        raise ValueError(f'{what}: fairness="key" needs key=, the path of the value between which to be fair')
    if fairness and order == "lifo":
        raise ValueError(
            f'{what}: fairness="key" serves each key in the order of arrival, so order="lifo" contradicts it'
        )
    if key is not None:
        _parts(what, key)
    return FlowQueue(
        name=name, concurrency=concurrency, rate=rate, key=key, order=cast("Order", order), fair=fairness is not None
    )


def check_singleton(workflow: str, singleton: Singleton, *, takes_input: bool, input_type: Any) -> Singleton:
    """Gives it back; ValueError where the input has nothing at its key, or a number makes no sense."""
    what = f'Singleton of workflow "{workflow}"'
    _check_slots(f"{what}: limit", singleton.limit)
    if singleton.max_queue is not None:
        count(f"{what}: max_queue", singleton.max_queue)
    if not takes_input:
        raise ValueError(f'{what}: its key "{singleton.key}" is a path into the input, and the workflow takes none')
    check_path(what, singleton.key, input_type)
    return singleton


def check_queue_of(queue: FlowQueue, step: RemoteStep[..., Any]) -> None:
    """ValueError where the first argument of a remote step has nothing at the queue's key."""
    if queue.key is None:
        return
    what = f'remote step "{step.name}" on app.queue("{queue.name}")'
    try:
        type_ = codec.input_type(step.fn, after=0)
    except IndexError:
        raise ValueError(
            f'{what}: the key "{queue.key}" is a path into its first argument, and it takes none'
        ) from None
    except (NameError, TypeError):
        return  # its annotation names what is not known yet
    check_path(what, queue.key, type_)


def lane_of_call(queues: Mapping[str, FlowQueue], queue: str, args_json: str, *, priority: int = 0) -> LaneClaim | None:
    """What an attempt must have a slot of before it is sent; None if nothing limits its queue.

    `args_json` is the text of the call's arguments, `{"args": [...], "kwargs": {...}}`. Raises InvalidInput where they
    have no value at the queue's key.
    """
    flow = queues.get(queue)
    if flow is None:
        return None
    value = None if flow.key is None else _value_at(f'a call on queue "{queue}"', flow.key, _first_of(args_json))
    spec = LaneSpec(
        name=lane_name("queue", queue, None if flow.fair else value),
        limit=flow.concurrency,
        rate=None if flow.rate is None else LaneRate(flow.rate.limit, flow.rate.per),
        order=flow.order,
        fair=flow.fair,
    )
    return LaneClaim(spec=spec, priority=priority, fairness_key=(value or "") if flow.fair else "")


def lane_of_run(workflow: Workflow[Any, Any], input_json: str | None) -> LaneSpec | None:
    """What a run must have a slot of; None for a workflow that is no singleton.

    Raises InvalidInput where the input has no value at the singleton's key.
    """
    singleton = workflow.singleton
    if singleton is None:
        return None
    given = None if input_json is None else json.loads(input_json)
    value = _value_at(f'the input of workflow "{workflow.name}"', singleton.key, given)
    return LaneSpec(
        name=lane_name("singleton", workflow.name, value), limit=singleton.limit, max_queue=singleton.max_queue
    )


def lane_name_of_run(workflow: Workflow[Any, Any], input_json: str | None) -> str | None:
    """What `Run.lane` is of a run that begins; raises as `lane_of_run`. Its first turn brings it into the lane."""
    lane = lane_of_run(workflow, input_json)
    return None if lane is None else lane.name


def check_path(what: str, path: str, type_: Any) -> None:
    """ValueError where no value of the type can have anything at the path; what types do not tell is let pass."""
    _check_parts(f'{what}: the key "{path}"', _parts(what, path), type_)


def _check_parts(what: str, parts: list[str], type_: Any) -> None:
    origin = get_origin(type_)
    if origin is Annotated:
        _check_parts(what, parts, get_args(type_)[0])
    elif origin is Union or origin is types.UnionType:
        _check_members(what, parts, [member for member in get_args(type_) if member is not type(None)])
    elif parts and isinstance(origin, type) and issubclass(origin, _NO_FIELDS):
        _check_parts(what, parts, origin)
    elif parts and isinstance(type_, type):
        names = _field_types(type_)
        if names is None:
            return
        if parts[0] not in names:
            known = f"; it has {', '.join(names)}" if names else ""
            raise ValueError(f'{what}: {codec.type_name(type_)} has no "{parts[0]}"{known}')
        _check_parts(what, parts[1:], names[parts[0]])


def _check_members(what: str, parts: list[str], members: list[Any]) -> None:
    faults: list[ValueError] = []
    for member in members:
        try:
            _check_parts(what, parts, member)
        except ValueError as fault:
            faults.append(fault)
    if faults and len(faults) == len(members):
        raise faults[0]


def _field_types(type_: type[Any]) -> Mapping[str, Any] | None:
    """The types of a class's fields by the names that they have in JSON; None if it does not tell."""
    if issubclass(type_, BaseModel):
        named = type_.model_fields
        aliases = {str(f.serialization_alias or f.alias): f.annotation for f in named.values() if f.alias}
        return {**{name: f.annotation for name, f in named.items()}, **aliases}
    try:
        if is_dataclass(type_):
            hints = get_type_hints(type_)
            return {f.name: hints[f.name] for f in fields(type_)}
        if is_typeddict(type_):
            return get_type_hints(type_)
    except NameError:
        return None  # it names what is not known yet
    return {} if issubclass(type_, _NO_FIELDS) else None


def _parts(what: str, path: str) -> list[str]:
    parts = path.split(".")
    if not all(parts):
        raise ValueError(f'{what}: the key {path!r} is no path like "customer.id"')
    return parts


def _first_of(args_json: str) -> Any:
    call = json.loads(args_json)
    return next(iter((*call.get("args", ()), *call.get("kwargs", {}).values())), None)


def _value_at(what: str, path: str, value: Any) -> str:
    found = value
    for part in path.split("."):
        found = cast("dict[str, Any]", found).get(part) if isinstance(found, dict) else None
    if isinstance(found, str):
        return found
    if found is None or isinstance(found, (dict, list)):
        has = "nothing" if found is None else "more than one value"
        raise InvalidInput(what, f'it has {has} at "{path}", and a limit is kept by the value there')
    return json.dumps(found)


def _check_slots(what: str, slots: int) -> None:
    if count(what, slots, minimum=1) > HOLDERS:
        raise LimitExceeded(what, slots, HOLDERS, unit="slots")
