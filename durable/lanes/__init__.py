"""Lanes at work: flow control of remote steps, and mutual exclusion of runs."""

from durable.lanes.holders import alive, task_action, unaware
from durable.lanes.slots import Granted, Waiting, enter, enter_run, holds, leave, pump

__all__ = [
    "Granted",
    "Waiting",
    "alive",
    "enter",
    "enter_run",
    "holds",
    "leave",
    "pump",
    "task_action",
    "unaware",
]
