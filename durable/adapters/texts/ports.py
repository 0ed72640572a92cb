"""The ports of a deployment, with every payload in the form in which it is stored and sent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from durable.adapters.texts import values
from durable.adapters.texts.store import TextStore
from durable.adapters.texts.wrapping import Wrapping
from durable.model.stored import Opened

if TYPE_CHECKING:
    from durable.model.envelope import Envelope
    from durable.model.stored import PayloadCodec
    from durable.model.task import StepTask
    from durable.ports import Blobs, Ports, RunQueue, StepQueue, Store, Timers


def with_texts(ports: Ports, codec: PayloadCodec | None = None) -> Ports:
    """The same ports; what engine and client see of payloads is plain text, whatever lies behind."""
    wrapping = Wrapping(ports.blobs, ports.new_id, codec)
    return replace(
        ports,
        store=cast("Store", TextStore(ports.store, wrapping)),
        runs=TextRunQueue(ports.runs, wrapping),
        timers=cast("Timers", TextTimers(ports.timers, wrapping)),
        blobs=cast("Blobs", TextBlobs(ports.blobs, wrapping)),
        steps=TextSteps(ports.steps, wrapping),
        texts=ReceivedTexts(wrapping),
    )


class TextRunQueue:
    """Implements `RunQueue` over another one."""

    def __init__(self, runs: RunQueue, wrapping: Wrapping) -> None:
        self._runs = runs
        self._wrapping = wrapping

    def send(self, envelope: Envelope) -> None:
        self._runs.send(values.envelope_out(self._wrapping, envelope))


class TextTimers:
    """Implements `Timers` over another one."""

    def __init__(self, timers: Timers, wrapping: Wrapping) -> None:
        self._timers = timers
        self._wrapping = wrapping

    def __getattr__(self, name: str) -> Any:
        return getattr(self._timers, name)

    def send(self, envelope: Envelope, *, delay: float = 0.0) -> None:
        self._timers.send(values.envelope_out(self._wrapping, envelope), delay=delay)


class TextSteps:
    """Implements `StepQueue` over another one."""

    def __init__(self, steps: StepQueue, wrapping: Wrapping) -> None:
        self._steps = steps
        self._wrapping = wrapping

    def send(self, task: StepTask, *, delay: float = 0.0) -> None:
        self._steps.send(values.task_out(self._wrapping, task), delay=delay)


class TextBlobs:
    """Implements `Blobs` over another one: what `ctx.offload` stores is sealed too."""

    def __init__(self, blobs: Blobs, wrapping: Wrapping) -> None:
        self._blobs = blobs
        self._wrapping = wrapping

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def put(self, key: str, data: bytes) -> None:
        self._blobs.put(key, self._wrapping.bytes_out(key, data))

    def get(self, key: str) -> bytes | None:
        return self._wrapping.bytes_in(key, self._blobs.get(key))


class ReceivedTexts:
    """Implements `Texts`."""

    def __init__(self, wrapping: Wrapping) -> None:
        self._wrapping = wrapping

    def kept(self, run_id: str, text: str, *, what: str) -> str:
        stored = self._wrapping.out(text, run_id, what)
        return text if stored is text else Opened.of(text, stored)

    def envelope(self, envelope: Envelope) -> Envelope:
        return values.envelope_in(self._wrapping, envelope)

    def task(self, task: StepTask) -> StepTask:
        return values.task_in(self._wrapping, task)
