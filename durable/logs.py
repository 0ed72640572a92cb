"""Which run a log record belongs to: known wherever durable, workflow code or a step logs in its own thread or task."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from durable.step_context import current_step

FIELDS: Final = ("run_id", "workflow", "location", "attempt")


@dataclass(slots=True)
class _Subject:
    """The run that is being worked on; its workflow is known once its record is read."""

    run_id: str
    workflow: str | None
    location: str | None
    attempt: int | None


_subject: ContextVar[_Subject | None] = ContextVar("durable_subject", default=None)


@contextmanager
def about_run(
    run_id: str, workflow: str | None = None, *, location: str | None = None, attempt: int | None = None
) -> Generator[None]:
    """What is logged inside is about this run; workflow code that begins inside takes it along."""
    token = _subject.set(_Subject(run_id, workflow, location, attempt))
    try:
        yield
    finally:
        _subject.reset(token)


def name_workflow(workflow: str) -> None:
    """Tells the workflow of the run that the log is about."""
    if (subject := _subject.get()) is not None:
        subject.workflow = workflow


def log_fields() -> Mapping[str, Any]:
    """`run_id` and `workflow`, in a step `location` and `attempt` too; empty where no run is at work."""
    subject = current_step() or _subject.get()
    if subject is None:
        return {}
    fields = {name: getattr(subject, name) for name in FIELDS}
    return {name: value for name, value in fields.items() if value}


class RunFields(logging.Filter):
    """Adds the fields to every record of a handler; those that a record has already stay as they are.

    Put it on a handler, not on a logger: a logger's filters do not see what comes from loggers below it.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Lets everything pass."""
        for name, value in log_fields().items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True
