"""The log of workflow code: silent while code is replayed that has run before."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from durable.execution import Execution

PARENT: Final = "durable.workflow"


class RunLogger(logging.Logger):
    """A logger of its own for each run, below the logger of its name; records carry `run_id` and `workflow`."""

    def __init__(self, execution: Execution) -> None:
        super().__init__(f"{PARENT}.{execution.info.workflow}")
        self._execution = execution
        self.parent = logging.getLogger(self.name)  # its level and handlers are the workflow's

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - logging's name
        return self._execution.live and super().isEnabledFor(level)

    def makeRecord(self, *args: Any, **kwargs: Any) -> logging.LogRecord:  # noqa: N802 - logging's name
        record = super().makeRecord(*args, **kwargs)
        record.run_id = self._execution.run_id
        record.workflow = self._execution.info.workflow
        return record
