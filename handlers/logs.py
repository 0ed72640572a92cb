"""What log records look like: one JSON object a line, with the run, step and attempt that each is about.

The objects are made by Powertools, whose import takes longer than a healthy turn: it waits for the first record.
"""

from __future__ import annotations

import logging
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TextIO

from durable.logs import FIELDS, RunFields
from handlers.metrics import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from durable.settings import Settings

CHATTY: Final = ("botocore", "boto3", "urllib3")
"""Libraries that tell at level INFO what only their own developers want to know."""

_MARK: Final = "durable_handler"


def install(settings: Settings, stream: TextIO | None = None) -> logging.Handler:
    """From now on, whatever any logger of this process says goes to the stream in this form; twice is once.

    Lambda's own handler gives way; others, that a user has put there, stay.
    """
    root = logging.getLogger()
    handler = logging.StreamHandler(stream or sys.stdout)
    handler.setFormatter(Plain() if settings.log_format == "text" else Structured(settings.service))
    handler.addFilter(RunFields())
    handler.set_name(_MARK)
    for other in list(root.handlers):
        if other.get_name() == _MARK or type(other).__name__.startswith("LambdaLoggerHandler"):
            root.removeHandler(other)
    root.addHandler(handler)
    root.setLevel(settings.log_level)
    for name in CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    return handler


class Structured(logging.Formatter):
    """Powertools' JSON, except that `location` is the operation of the run and not a line of code."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """The record on one line; its `counts` become metrics."""
        counts: Mapping[str, int] | None = record.__dict__.pop("counts", None)
        if counts:
            record.__dict__.update(counted(record.created, counts))
        return self._powertools.format(record)

    @cached_property
    def _powertools(self) -> logging.Formatter:
        from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter  # noqa: PLC0415 - see above

        class RunFormatter(LambdaPowertoolsFormatter):
            def format(self, record: logging.LogRecord) -> str:
                if not hasattr(record, "location"):
                    record.location = ""
                return super().format(record)

            def serialize(self, log: Any) -> str:
                return super().serialize({name: value for name, value in log.items() if name != "location" or value})

        return RunFormatter(
            log_record_order=["level", "message", "timestamp", "service", "name", *FIELDS],
            use_rfc3339=True, utc=True, serialize_stacktrace=False,
            # Named after attributes of a record, these are filled in from it.
            service=self._service, name="%(name)s", location="%(location)s", funcName="%(funcName)s", lineno="%(lineno)d",
        )  # fmt: skip


class Plain(logging.Formatter):
    """For people at a terminal: level, run, operation and attempt before what is said."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(about)s%(name)s: %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """The record, and below it the trace of its error."""
        run_id, workflow, location, attempt = (getattr(record, name, None) for name in FIELDS)
        parts = [run_id, workflow, location, None if attempt is None else f"#{attempt}"]
        record.about = f"[{' '.join(part for part in parts if part)}] " if run_id else ""
        return super().format(record)
