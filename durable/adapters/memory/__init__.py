"""The ports in memory, with the rules of the services they stand for and no others."""

from durable.adapters.memory.blobs import MemoryBlobs
from durable.adapters.memory.clock import VirtualClock
from durable.adapters.memory.queues import MemoryRunQueue, Received
from durable.adapters.memory.steps import MemoryStepQueue, MemoryTaskSource
from durable.adapters.memory.store import MemoryStore
from durable.adapters.memory.timers import MemoryTimers, Schedule

__all__ = [
    "MemoryBlobs",
    "MemoryRunQueue",
    "MemoryStepQueue",
    "MemoryStore",
    "MemoryTaskSource",
    "MemoryTimers",
    "Received",
    "Schedule",
    "VirtualClock",
]
