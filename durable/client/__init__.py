"""What callers call."""

from durable.client.calls import OpenCall
from durable.client.client import CancelMode, Client
from durable.client.deciding import OpenReview, ReviewPage
from durable.client.entities import ClientEntityRef
from durable.client.handle import RunHandle
from durable.client.listing import StatusFilter
from durable.client.published import StreamChunk
from durable.client.starting import OnConflict
from durable.client.updating import UpdateHandle
from durable.client.where import Where

__all__ = [
    "CancelMode",
    "Client",
    "ClientEntityRef",
    "OnConflict",
    "OpenCall",
    "OpenReview",
    "ReviewPage",
    "RunHandle",
    "StatusFilter",
    "StreamChunk",
    "UpdateHandle",
    "Where",
]
