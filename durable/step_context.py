"""What a step body can ask about itself while it runs."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from itertools import count
from typing import Any, overload

from typing_extensions import TypeForm, TypeVar

from durable import codec
from durable.errors import BlobGone
from durable.model.ids import check_name
from durable.values import Blob

T = TypeVar("T")

_current: ContextVar[StepContext] = ContextVar("durable_step")


class StepStream:
    """A stream as one attempt of a step appends to it. Safe to share between threads of the body."""

    __slots__ = ("_append", "_name", "_numbers")

    def __init__(self, name: str, append: Callable[[str, int, str], None]) -> None:
        self._name = name
        self._append = append
        self._numbers = count(1)

    def append(self, value: object, /) -> None:
        """Appends a plain JSON value. If the body is executed again, its chunks take the place of these."""
        text = codec.encode(value, codec.UNTYPED, what=f'a chunk of stream "{self._name}"')
        self._append(self._name, next(self._numbers), text)


class StepContext:
    """One attempt of one step."""

    __slots__ = (
        "_append",
        "_beat",
        "_cancelled",
        "_ends",
        "_fetch",
        "_streams",
        "attempt",
        "headers",
        "idempotency_key",
        "location",
        "run_id",
        "workflow",
    )

    def __init__(
        self,
        *,
        run_id: str,
        location: str,
        attempt: int,
        idempotency_key: str,
        ends: float,
        append: Callable[[str, int, str], None] | None = None,
        fetch: Callable[[str], bytes | None] | None = None,
        headers: Mapping[str, str] | None = None,
        workflow: str = "",
        beat: Callable[[object], bool] | None = None,
    ) -> None:
        self.run_id = run_id
        self.workflow = workflow
        """That of the run, by name."""
        self.location = location
        self.attempt = attempt
        """1 for the first attempt."""
        self.idempotency_key = idempotency_key
        """The same for every attempt of this step: hand it to the service that the step calls."""
        self.headers: Mapping[str, str] = headers or {}
        """What the run's starter gave it to pass on: trace context, for one."""
        self._ends = ends
        self._cancelled = False
        self._append = append
        self._fetch = fetch
        self._beat = beat
        self._streams: dict[str, StepStream] = {}

    def stream(self, name: str, /) -> StepStream:
        """A stream of the run: what this attempt appends is there for readers at once."""
        append = self._append
        if append is None:
            message = "this step runs outside a run, so there is no stream to append to"
            raise LookupError(message)
        return self._streams.setdefault(name, StepStream(check_name("name of a stream", name), append))

    @overload
    def load(self, blob: Blob[T], type: TypeForm[T], /) -> T: ...
    @overload
    def load(self, blob: Blob[Any], /) -> Any: ...
    def load(self, blob: Blob[Any], type: Any = codec.UNTYPED, /) -> Any:
        """The value that `ctx.offload` stored; without a type it is plain JSON data.

        Raises:
            LookupError: It is not there any more: its run was deleted.
        """
        data = None if self._fetch is None else self._fetch(blob.key)
        if data is None:
            raise BlobGone(blob.key)
        return codec.decode(zlib.decompress(data).decode(), type)

    @property
    def deadline(self) -> datetime:
        """When the attempt's result stops counting, UTC."""
        return datetime.fromtimestamp(self._ends, UTC)

    @property
    def cancelled(self) -> bool:
        """Whether the result is no longer wanted: it timed out, or the workflow cancelled it."""
        return self._cancelled

    def heartbeat(self, progress: object = None, /) -> None:
        """Tells that the body is alive and how far it has come, in plain JSON data.

        Call it as often as you like: of a remote step one call in a few seconds is stored, and learns whether the result
        is still wanted (`cancelled`). A local step's turn watches it anyway: nothing is stored.
        """
        if self._beat is not None and not self._beat(progress):
            self.cancel()

    def cancel(self) -> None:
        """Tells the body that its result is no longer wanted; it cannot be stopped."""
        self._cancelled = True


def step_context() -> StepContext:
    """The attempt that is running in this thread or task; LookupError outside a step."""
    try:
        return _current.get()
    except LookupError:
        message = "step_context() was called outside a step: there is no attempt to tell about"
        raise LookupError(message) from None


def current_step() -> StepContext | None:
    """The same, or None outside a step."""
    return _current.get(None)


def enter_step(context: StepContext) -> None:
    """Makes the attempt known to the body that runs next in this context."""
    _current.set(context)
