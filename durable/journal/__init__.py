"""One run's history in memory, and the scopes in which code claims it."""

from durable.journal.journal import CHECKPOINT, Cancellation, Checkpoint, Journal, Record, is_awaited
from durable.journal.scopes import Entered, Scope, current_scope, shortened, unawaited
from durable.journal.waits import name_waits

__all__ = [
    "CHECKPOINT",
    "Cancellation",
    "Checkpoint",
    "Entered",
    "Journal",
    "Record",
    "Scope",
    "current_scope",
    "is_awaited",
    "name_waits",
    "shortened",
    "unawaited",
]
