"""A step whose result is too large for the history: it goes to the blob store, and what is recorded is a reference.

| state   | history at the location | what happens                                                          |
|---------|-------------------------|-----------------------------------------------------------------------|
| new     | nothing                 | the engine runs the body as any step's                                |
| ended   | nothing                 | the value is stored under a new key; a crash here leaves it to retention |
| done    | the reference           | it is returned as a Blob                                              |
| failed  | an error                | StepFailed is raised                                                  |
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from durable import codec
from durable.model.limits import BLOB_BYTES
from durable.ops.operation import Host
from durable.ops.step import StepOperation
from durable.options import Step
from durable.values import Blob


class OffloadOperation(StepOperation):
    """`await ctx.offload("rows", load_rows)`."""

    __slots__ = ("keep",)
    keep: Callable[[bytes], str]
    """Stores bytes and gives their key; set by the engine before the body runs."""

    def __init__(self, host: Host, name: str, fn: Callable[..., Any]) -> None:
        super().__init__(host, name, Step(), fn)

    @property
    def result_type(self) -> Any:
        """What the history holds."""
        return Blob

    def encode(self, value: Any) -> str:
        """Stores the value and gives the reference to it as JSON text."""
        text = codec.encode(value, self._known.result_type, what=f'the blob "{self.name}"', limit=BLOB_BYTES)
        data = text.encode()
        return super().encode(Blob[Any](self.keep(zlib.compress(data)), len(data)))
