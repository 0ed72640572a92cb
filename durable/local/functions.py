"""Runs a Lambda function in child processes: a death is a real death, and a timeout is a kill."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from typing import IO, Any, Final

from durable.local.events import ACCOUNT
from durable.local.invocation import Died, Outcome, Raised, Returned, TimedOut
from durable.local.provision import Function
from durable.ports import Clock

_CHUNK: Final = 64 * 1024
_INIT: Final = 60.0
"""Seconds a process gets to import its handler, which does not count as the invocation's time; Lambda gives 10."""
_PATIENCE: Final = 2.0
"""Seconds a process gets to end by itself when the stack shuts down."""


class LocalFunction:
    """A function of the template, with up to `concurrency` processes that stay warm between invocations."""

    def __init__(
        self,
        function: Function,
        *,
        environment: Mapping[str, str],
        region: str,
        clock: Clock,
        concurrency: int,
        output: IO[str] | None = None,
    ) -> None:
        self.name = function.name
        self._function = function
        self._environment = {**environment, **function.environment, **_lambda_variables(function, region)}
        self._region = region
        self._clock = clock
        self._output = output
        self._free = threading.BoundedSemaphore(concurrency)
        self._idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._alive: set[_Process] = set()
        self._stopping = False

    @property
    def timeout(self) -> float:
        """Seconds an invocation may take."""
        return self._function.timeout

    def invoke(self, event: Any) -> Outcome:
        """Runs the handler on an event and waits for the end of it, or for a free process first."""
        with self._free:
            process = self._process()
            outcome = process.invoke(event, self._context(), self._clock)
            match outcome:
                case Returned() | Raised():
                    self._idle.put(process)
                case Died() | TimedOut():
                    self._forget(process)
        return outcome

    def prepare(self) -> None:
        """Starts one process, so that the first invocation need not wait for it."""
        self._idle.put(self._process())

    def stop(self) -> None:
        """Ends all processes; an invocation that is running is cut short."""
        with self._lock:
            self._stopping = True
            alive = list(self._alive)
        for process in alive:
            process.dismiss()
        for process in alive:
            process.end()

    def _process(self) -> _Process:
        while (warm := self._warm()) is not None:
            if warm.alive:
                return warm
            self._forget(warm)
        process = _Process(self._function.handler, self._environment, self._output)
        with self._lock:
            self._alive.add(process)
            stopping = self._stopping
        if stopping:
            process.dismiss()
        return process

    def _warm(self) -> _Process | None:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return None

    def _forget(self, process: _Process) -> None:
        process.end()
        with self._lock:
            self._alive.discard(process)

    def _context(self) -> dict[str, Any]:
        return {
            "aws_request_id": str(uuid.uuid4()),
            "function_name": self.name,
            "memory_limit_in_mb": self._function.memory,
            "invoked_function_arn": f"arn:aws:lambda:{self._region}:{ACCOUNT}:function:{self.name}",
            "log_group_name": f"/aws/lambda/{self.name}",
            "seconds": self.timeout,
        }


class _Process:
    """One warm container: takes one invocation at a time."""

    def __init__(self, handler: str, environment: Mapping[str, str], output: IO[str] | None) -> None:
        # In a session of its own, so that Ctrl-C ends invocations in order, not all at once in the middle.
        self._child = subprocess.Popen(
            [sys.executable, "-m", "durable.local.worker", handler],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            env={**_surroundings(), **environment},
            start_new_session=True,
        )
        self._ready = False

    @property
    def alive(self) -> bool:
        """Whether it can take an invocation: somebody may have killed it while it was idle."""
        return self._child.poll() is None

    def invoke(self, event: Any, context: Mapping[str, Any], clock: Clock) -> Outcome:
        """Hands the event over and waits for the answer, for as long as the context says."""
        if not self._ready:
            first = self._read_line(clock.monotonic() + _INIT, clock)
            if first is None:
                self._child.kill()
                return TimedOut(self._child.pid, _INIT)
            self._ready = True  # or dead, which shows in a moment
        request = json.dumps({"event": event, "context": context}) + "\n"
        seconds = float(context["seconds"])
        deadline = clock.monotonic() + seconds
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(request.encode())
            self._child.stdin.flush()
        except (BrokenPipeError, ValueError):  # killed while it was idle, or dismissed
            return Died(self._child.pid, self._child.wait())
        answer = self._read_line(deadline, clock)
        if answer is None:
            self._child.kill()
            return TimedOut(self._child.pid, seconds)
        if not answer.endswith(b"\n"):
            return Died(self._child.pid, self._child.wait())
        return _outcome(json.loads(answer))

    def _read_line(self, deadline: float, clock: Clock) -> bytes | None:
        """A line, less than a line if the process ended, or None when the time is over."""
        assert self._child.stdout is not None
        descriptor = self._child.stdout.fileno()
        read = bytearray()
        while not read.endswith(b"\n"):
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - clock.monotonic()))
            if not ready:
                return None
            chunk = os.read(descriptor, _CHUNK)
            if not chunk:
                break
            read += chunk
        return bytes(read)

    def dismiss(self) -> None:
        """Tells the process to end after what it is doing."""
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.close()

    def end(self) -> None:
        """Waits a little for the process to end, then kills it."""
        self.dismiss()
        try:
            self._child.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        assert self._child.stdout is not None
        self._child.stdout.close()


def _surroundings() -> dict[str, str]:
    """PATH and the like; not the AWS account that this machine may be logged in to."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}  # noqa: TID251 - handed on


def _outcome(answer: dict[str, Any]) -> Outcome:
    if error := answer.get("error"):
        return Raised(**error)
    return Returned(answer["value"])


def _lambda_variables(function: Function, region: str) -> dict[str, str]:
    """What Lambda itself puts into the environment."""
    return {
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
        "_HANDLER": function.handler,
    }
