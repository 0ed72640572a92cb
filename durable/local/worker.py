"""The process of a function: reads invocations from standard input, one JSON object a line, and answers on a line each.

It stands in for Lambda's runtime, so it imports nothing that Lambda would not.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
import traceback
from dataclasses import dataclass, field
from typing import IO, Any, Protocol

READY = "ready\n"
"""The first line: the handler is imported, and the time of an invocation may begin."""


class _Handler(Protocol):
    def __call__(self, event: Any, context: Any, /) -> Any: ...


@dataclass(slots=True)
class LambdaContext:
    """What a handler gets as its context; names are Lambda's."""

    aws_request_id: str
    function_name: str
    memory_limit_in_mb: int
    invoked_function_arn: str
    seconds: float
    function_version: str = "$LATEST"
    log_group_name: str = ""
    log_stream_name: str = "local"
    identity: None = None
    client_context: None = None
    _started: float = field(default_factory=time.monotonic)  # noqa: TID251 - Lambda's own clock, not the engine's

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until this process is killed."""
        spent = time.monotonic() - self._started  # noqa: TID251 - the same
        return max(0, int((self.seconds - spent) * 1000))


def serve(handler_name: str, invocations: IO[str], answers: IO[str]) -> None:
    """Says that it is ready, then answers invocations until the input ends."""
    handler = _Imported(handler_name)
    answers.write(READY)
    answers.flush()
    for line in invocations:
        request = json.loads(line)
        answers.write(json.dumps(_invoke(handler, request["event"], LambdaContext(**request["context"]))) + "\n")
        answers.flush()


class _Imported:
    """A handler that is imported now, or else at its first call, so that the error has somewhere to go."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._handler: _Handler | None = None
        with contextlib.suppress(Exception):
            self._import()

    def __call__(self, event: Any, context: LambdaContext) -> Any:
        return self._import()(event, context)

    def _import(self) -> _Handler:
        if self._handler is None:
            module, _, attribute = self._name.rpartition(".")
            self._handler = getattr(importlib.import_module(module), attribute)
        assert self._handler is not None
        return self._handler


def _invoke(handler: _Handler, event: Any, context: LambdaContext) -> dict[str, Any]:
    try:
        answer = handler(event, context)
        json.dumps(answer)
    except Exception as error:  # noqa: BLE001 - whatever a handler raises is the answer
        return {"error": {"type": type(error).__name__, "message": str(error), "trace": traceback.format_exc()}}
    return {"value": answer}


def main() -> None:
    """Serves on standard input and output, which the handler and its own children do not get.

    What they print goes to standard error, and there is nothing for them to read.
    """
    invocations = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    serve(sys.argv[1], invocations, answers)


if __name__ == "__main__":
    main()
