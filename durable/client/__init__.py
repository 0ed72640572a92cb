"""What callers call."""

from durable.client.client import CancelMode, Client
from durable.client.handle import RunHandle
from durable.client.listing import StatusFilter
from durable.client.starting import OnConflict
from durable.client.undone import ClientEntityRef

__all__ = ["CancelMode", "Client", "ClientEntityRef", "OnConflict", "RunHandle", "StatusFilter"]
