"""A worker process: receives tasks from one queue and performs them until it is told to stop."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from durable.engine.pickup import POLL_SECONDS
from durable.errors import StoreUnavailable

if TYPE_CHECKING:
    from durable.engine.worker import RemoteWorker
    from durable.model.delivery import TaskDelivery
    from durable.ports import TaskSource

log = logging.getLogger("durable")

HIDDEN_SECONDS: Final = 60.0
"""So soon another worker gets the task of one that died."""
FIRST_DELAY: Final = 5.0
"""Seconds until a task that came back is tried again; doubled every time."""
LONGEST_DELAY: Final = 60.0


class Serving:
    """Some threads, each with one task at a time. Implements `Visibility` for what they hold."""

    seconds = HIDDEN_SECONDS

    def __init__(self, worker: RemoteWorker, source: TaskSource, *, concurrency: int = 1) -> None:
        self._worker = worker
        self._source = source
        self._lock = threading.Lock()
        self._held: dict[str, TaskDelivery] = {}
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._serve, name=f"durable-worker-{n}", daemon=True) for n in range(concurrency)
        ]

    def start(self) -> None:
        """Begins to receive."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Receives nothing more; what is held goes on."""
        self._stopping.set()

    def wait(self, seconds: float) -> bool:
        """Waits for what is held, at most so long in all; True once nothing is."""
        for thread in self._threads:
            thread.join(seconds / len(self._threads))
        return not any(thread.is_alive() for thread in self._threads)

    def give_back(self) -> int:
        """Makes what is held visible to others at once, and tells its bodies; says how many tasks that were."""
        self._worker.cancel()
        with self._lock:
            held = list(self._held)
            self._held.clear()
        for delivery_id in held:
            self._hide(delivery_id, 0)
        return len(held)

    def hide(self, delivery_id: str, seconds: float) -> None:
        """Keeps a task that is held from others for so long from now."""
        with self._lock:
            held = delivery_id in self._held
        if held:
            self._source.hide(delivery_id, seconds)

    def _serve(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                deliveries = self._source.receive(wait=POLL_SECONDS, hidden=HIDDEN_SECONDS)
            except Exception as problem:
                failures += 1
                pause = min(LONGEST_DELAY, 2.0**failures)
                if isinstance(problem, StoreUnavailable):
                    log.warning("no tasks for %.0f s: %s", pause, problem)
                else:
                    log.exception("no tasks for %.0f s", pause)
                self._stopping.wait(pause)
                continue
            failures = 0
            for delivery in deliveries:
                self._perform(delivery)

    def _perform(self, delivery: TaskDelivery) -> None:
        if self._stopping.is_set():
            self._hide(delivery.id, 0)
            return
        with self._lock:
            self._held[delivery.id] = delivery
        comes_back = True
        try:
            comes_back = bool(self._worker.process([delivery], visibility=self))
        except Exception:
            log.exception("a task comes back")
        with self._lock:
            if self._held.pop(delivery.id, None) is None:
                return  # it was given back: it is another worker's now
        if comes_back:
            self._hide(delivery.id, min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(delivery.receive_count - 1, 10)))
            return
        try:
            self._source.acknowledge(delivery.id)
        except Exception:  # it is performed again, under the same idempotency key
            log.exception("a task that is done could not be deleted, and comes back")

    def _hide(self, delivery_id: str, seconds: float) -> None:
        try:
            self._source.hide(delivery_id, seconds)
        except Exception:  # it comes back without it, a little later
            log.exception("a task comes back later than it could")
