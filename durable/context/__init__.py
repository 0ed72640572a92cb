"""What authors call inside a workflow."""

from durable.context.branches import Branch
from durable.context.children import ChildHandle
from durable.context.context import Context
from durable.context.entities import EntityRef
from durable.context.mailbox import Mailbox, UpdateRequest, Updates
from durable.context.part import Op
from durable.context.people import Escalation, Webhook, after, auto_reject

__all__ = [
    "Branch",
    "ChildHandle",
    "Context",
    "EntityRef",
    "Escalation",
    "Mailbox",
    "Op",
    "UpdateRequest",
    "Updates",
    "Webhook",
    "after",
    "auto_reject",
]
