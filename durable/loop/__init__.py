"""The event loop of workflow code."""

from durable.loop.cancelling import cancel_run
from durable.loop.handles import Handle, WorkflowFuture, WorkflowTask
from durable.loop.workflow_loop import MAX_CALLBACKS, Running, WorkflowLoop, dropped_generator, running_loop

__all__ = [
    "MAX_CALLBACKS",
    "Handle",
    "Running",
    "WorkflowFuture",
    "WorkflowLoop",
    "WorkflowTask",
    "cancel_run",
    "dropped_generator",
    "running_loop",
]
