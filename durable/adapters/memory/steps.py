"""The queue of the workers in memory, both ends of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable.adapters.memory.queues import MemoryQueue
from durable.adapters.sizes import check_delay, check_task
from durable.model.delivery import TaskDelivery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from durable.model.task import StepTask
    from durable.ports import Clock


class MemoryStepQueue(MemoryQueue):
    """Implements `StepQueue`; it is itself the standard queue that workers receive from, whatever queue they name."""

    def __init__(self, clock: Clock, *, visibility_timeout: float = 150.0, max_receives: int = 10) -> None:
        super().__init__(clock, fifo=False, visibility_timeout=visibility_timeout, max_receives=max_receives)

    def send(self, task: StepTask, *, delay: float = 0.0) -> None:
        body = task.to_text()
        check_task(task, body)
        self.enqueue(body, delay=check_delay(delay))


class MemoryTaskSource:
    """Implements `TaskSource` on such a queue. It does not wait: time passes elsewhere."""

    def __init__(self, queue: MemoryQueue) -> None:
        self._queue = queue

    def receive(self, *, wait: float, hidden: float) -> Sequence[TaskDelivery]:  # noqa: ARG002 - see the class
        received = self._queue.receive(1)
        for message in received:
            self._queue.change_visibility(message.receipt, hidden)
        return [TaskDelivery(id=it.receipt, body=it.body, receive_count=it.receive_count) for it in received]

    def acknowledge(self, delivery_id: str) -> None:
        self._queue.acknowledge(delivery_id)

    def hide(self, delivery_id: str, seconds: float) -> None:
        self._queue.change_visibility(delivery_id, seconds)
