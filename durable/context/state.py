"""What a run shows, what versions of its code it has passed, and what is kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast, overload

from typing_extensions import TypeVar

from durable import codec
from durable.channels import StateKey
from durable.context.part import Op, Part
from durable.context.streams import Stream
from durable.errors import InvalidName
from durable.model.attributes import AttributeValue, check_attributes
from durable.model.entry import Kind
from durable.model.ids import check_name
from durable.model.review import STATE_PREFIX
from durable.model.tags import check_tags
from durable.ops.checkpoint import CheckpointOperation
from durable.ops.offload import OffloadOperation
from durable.ops.removed import remove
from durable.ops.state import AttributeValues, Tags, Value, What, announce
from durable.ops.version import VersionOperation
from durable.options import count
from durable.values import Blob

T = TypeVar("T")


class States(Part):
    """The part of the context that publishes, marks and keeps. What is not awaited here never waits and never fails."""

    @overload
    def set_state(self, key: StateKey[T], value: T, /) -> None: ...
    @overload
    def set_state(self, key: str, value: object, /) -> None: ...
    def set_state(self, key: Any, value: Any, /) -> None:
        """Publishes a value, in the place of the one before: `client.get_state(run_id, key)` reads it, also after the end.

        It is stored before the next step begins or the next result is recorded, and when the run waits or ends. It is no
        memory of the workflow's: code does not read it back.

        Raises:
            NotStorable: The value would not come back as it is.
            LimitExceeded: It is larger than 256 KB.
        """
        name, type_ = (check_state_key(key), codec.UNTYPED) if isinstance(key, str) else (key.name, key.type)
        text = codec.encode(value, type_, what=f'the state "{name}"')
        self._announce("ctx.set_state", Value(check_state_key(name), text))

    def set_attributes(self, **attributes: str | float | bool | datetime) -> None:
        """Sets attributes by which runs are searched; those set before stay, unless they are named again.

        A run has room for eight, names and values together at most 220 bytes. A moment is kept as a text in UTC that sorts
        by time.
        """
        values = {_attribute_name(name): _attribute(name, value) for name, value in attributes.items()}
        self._announce("ctx.set_attributes", AttributeValues(check_attributes(values)))

    def add_tags(self, *tags: str) -> None:
        """Adds tags by which runs are listed; at most 10 in all, 256 bytes together. `ctx.run.tags` stays as it was."""
        self._announce("ctx.add_tags", Tags(check_tags(tags)))

    def get_version(self, name: str, latest: int, /) -> int:
        """The version of the code at this place: the latest, or 1 in a run that had passed it under older code."""
        latest = count("ctx.get_version(latest)", latest, minimum=1)
        return VersionOperation(self._execution, check_name("name of a version", name), latest).answer

    def patched(self, name: str, /) -> bool:
        """Whether this run takes the new code at this place."""
        return self.get_version(name, 2) > 1

    def removed(self, name: str, kind: str, /) -> None:
        """Accepts what runs have recorded of an operation that stood here, with all that it contains, and was deleted.

        Runs that have not come to it yet go on without it. Keep the call until the last run that has it has ended.
        """
        remove(self._execution, check_name("name of a removed operation", name), cast("Kind", kind))

    def rollback_checkpoint(self, name: str, /) -> Op[None]:
        """A rollback does not go back beyond this place: what was done before it stays done."""
        return CheckpointOperation(self._execution, check_name("name of a checkpoint", name))

    def offload(self, name: str, fn: Callable[[], T], /) -> Op[Blob[T]]:
        """Runs a function as a step, stores its large result apart, and gives a reference to it.

        The reference may be passed on and stored. `step_context().load(blob, type)` reads the value inside a step, where it
        is needed: workflow code never holds it. At most 64 MB of JSON; the deployment needs a bucket.

        Raises:
            StepFailed: As of a step.
        """
        return OffloadOperation(self._execution, check_name("name of an offload", name), fn)

    def stream(self, name: str, /) -> Stream:
        """A stream of chunks that clients can follow while the run goes on: `ctx.stream("log").append(line)`."""
        return Stream(self._execution, check_name("name of a stream", name))

    def _announce(self, operation: str, what: What) -> None:
        self._execution.journal.enter("state", operation)
        announce(self._execution, self._execution.live, what)


def check_state_key(key: str) -> str:
    """Gives the key back; refuses those that open reviews are published under."""
    if key.startswith(STATE_PREFIX):
        raise InvalidName("state key", key, f'keys that begin with "{STATE_PREFIX}" belong to ctx.review')
    return check_name("state key", key)


def _attribute_name(name: str) -> str:
    if name.startswith("_"):
        raise InvalidName("attribute", name, "names that begin with _ belong to the framework")
    return check_name("attribute", name)


def _attribute(name: str, value: object) -> AttributeValue:
    match value:
        case datetime():
            if value.utcoffset() is None:
                raise ValueError(f"ctx.set_attributes({name}=...) got a datetime without a time zone")
            return moment_text(value)
        case str() | bool() | int() | float():
            return value
        case _:
            raise TypeError(
                f"ctx.set_attributes({name}=...) takes a text, a number, a truth value or a datetime, not {type(value).__name__}"
            )


def moment_text(moment: datetime) -> str:
    """A moment as attributes hold it: UTC, to the microsecond, so that texts sort by time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
