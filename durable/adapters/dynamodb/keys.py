"""The key layout of the table: which partition and sort key each thing has, and how index keys are made.

| pk | sk | item |
|---|---|---|
| `run#<id>` | `meta` | the run record |
| `run#<id>` | `h#<location><mark>` | an entry of the history |
| `run#<id>` | `io#input`, `io#output#<epoch>` | a payload stored apart |
| `run#<id>` | `k#<epoch>.<n>` | an entry that was pruned and can still be undone |
| `run#<id>` | `m#<message id>` | a message of the mailbox |
| `run#<id>` | `s#<key>` | a value that the run has published |
| `run#<id>` | `c#<key>#<chunk id>` | a chunk of a stream |
| `seen#<run or lineage id>` | `<message id>` | the tombstone of a consumed message whose entry is gone |
| `reply#<id>` | `<message id>` | the response to a message |
| `watch#<run or lineage id>` | `<run id>#<location>` | a run that waits for the end of this one |
| `task#<id>` | `<location>:<epoch>:<attempt>` | an attempt at a remote step; `<location>` alone: a callback |
| `lane#<name>` | `lane` | a lane: its limits, who has a slot, how many wait |
| `lane#<name>` | `t#<rank>` | a place in its queue |
| `lane#<name>` | `w#<holder>` | the ticket of one that waits |
| `sub#<event name>` | `<run id>#<location>` | a run that waits for the event |
| `kept#<event name>` | `<event id>` | an event that is kept for runs which come late |
| `taken#<event name>#<event id>` | `<run id>` | that the run has had the event |
| `idem#<key>` | `idem` | the run that an idempotency key has started |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

from durable.errors import LimitExceeded
from durable.model.limits import SORT_KEY_BYTES
from durable.model.location import escape

if TYPE_CHECKING:
    from durable.ports import Payload

META: Final = "meta"
IDEMPOTENCY: Final = "idem"
LANE: Final = "lane"
PLACES: Final = "t#"
ENTRIES: Final = "h#"
PAYLOADS: Final = "io#"
KEPT: Final = "k#"
MESSAGES: Final = "m#"
STATES: Final = "s#"
CHUNKS: Final = "c#"

LOADED: Final = (ENTRIES, "m$")
"""Sort keys of what a turn loads; `$` follows `#`, so the run record (`meta`) lies behind the mailbox's end.

What is published (`c#`, `s#`) lies outside, so a long stream costs a turn nothing.
"""

_RUN: Final = "run#"
_OUTPUT: Final = f"{PAYLOADS}output#"
_EPOCH_DIGITS: Final = 15
_N_DIGITS: Final = 9
_MICRO_DIGITS: Final = 17


def partition(run_id: str) -> str:
    """The partition of a run."""
    return _RUN + run_id


def run_id_of(pk: str) -> str:
    """The run that a partition belongs to."""
    return pk.removeprefix(_RUN)


def is_run(pk: str) -> bool:
    """Whether a partition is a run's."""
    return pk.startswith(_RUN)


def idempotency_partition(key: str) -> str:
    """The partition of an idempotency key."""
    return f"idem#{key}"


def tombstones(run_id: str) -> str:
    """The partition of a run's or lineage's tombstones."""
    return f"seen#{run_id}"


def replies(run_id: str) -> str:
    """The partition of the responses to a run's messages."""
    return f"reply#{run_id}"


def watchers(run_id: str) -> str:
    """The partition of the runs that wait for the end of a run or lineage."""
    return f"watch#{run_id}"


def watcher_key(run_id: str, location: str) -> str:
    """The sort key of a run that waits, and of the operation in it; run ids have no `#`."""
    return f"{run_id}#{location}"


def tasks(run_id: str) -> str:
    """The partition of the attempts at a run's remote steps."""
    return f"task#{run_id}"


def task_key(task_id: str) -> str:
    """The sort key of an attempt."""
    return _checked("the id of an attempt", task_id)


def subscribers(event: str) -> str:
    """The partition of the runs that wait for an event."""
    return f"sub#{event}"


def subscriber_key(run_id: str, location: str) -> str:
    """The sort key of an operation that waits for an event."""
    return _checked("the location of an operation", watcher_key(run_id, location))


def kept_events(event: str) -> str:
    """The partition of the events of one name that are kept."""
    return f"kept#{event}"


def takers(event: str, event_id: str) -> str:
    """The partition of the runs that have had an event."""
    return f"taken#{event}#{event_id}"


def lane_partition(name: str) -> str:
    """The partition of a lane."""
    return f"lane#{name}"


def lane_name_of(pk: str) -> str:
    """The lane that a partition belongs to."""
    return pk.removeprefix("lane#")


def place_key(rank: str) -> str:
    """The sort key of a place in a lane's queue: places sort by rank, behind the lane itself."""
    return PLACES + rank


def ticket_key(holder: str) -> str:
    """The sort key of a ticket."""
    return _checked("the name of a lane's holder", f"w#{holder}")


def lane_shard(name: str, shards: int) -> str:
    """The shard of the `due` index in which a lane is listed: apart from runs."""
    return f"lane#{shard_of(name, shards)}"


def ended_shard(run_id: str, shards: int) -> str:
    """The shard of the `due` index in which an ended run is listed that is to be deleted."""
    return f"ended#{shard_of(run_id, shards)}"


def entry_key(key: str) -> str:
    """The sort key of the entry with this key (location and mark); refuses one that DynamoDB would refuse."""
    return _checked("the location of an operation", ENTRIES + key)


def kept_key(epoch: int, n: int) -> str:
    """The sort key of an entry that is kept for a rollback; they sort by order of record."""
    return f"{KEPT}{epoch:0{_EPOCH_DIGITS}d}.{n:0{_N_DIGITS}d}"


def state_key(key: str) -> str:
    """The sort key of a published value."""
    return _checked("the key of a state", STATES + key)


def chunk_key(key: str, chunk_id: str) -> str:
    """The sort key of a chunk; with no chunk id, what the keys of all chunks of the stream start with."""
    return _checked("the key of a stream and the id of its chunk", f"{CHUNKS}{escape(key)}#{chunk_id}")


def chunk_range(key: str, chunk_id: str) -> tuple[str, str]:
    """Between which sort keys the chunks of a stream lie, from the one with this id on."""
    return chunk_key(key, chunk_id), f"{CHUNKS}{escape(key)}$"


def chunk_id_of(sk: str) -> str:
    """The id of the chunk with this sort key; keys of streams have `#` escaped."""
    return sk.split("#", 2)[2]


def message_key(message_id: str) -> str:
    """The sort key of a message."""
    return _checked("the id of a message", MESSAGES + message_id)


def payload_key(payload: Payload, epoch: int) -> str:
    """The sort key of a payload; outputs sort by the epoch that wrote them."""
    if payload == "input":
        return f"{PAYLOADS}input"
    return f"{_OUTPUT}{epoch:0{_EPOCH_DIGITS}d}"


def payload_of(sk: str) -> Payload:
    """Which payload a sort key names."""
    return "output" if sk.startswith(_OUTPUT) else "input"


def shard_of(run_id: str, shards: int) -> int:
    """The shard of an index in which a run is listed: always the same for one count of shards."""
    return crc32(run_id.encode()) % shards


def created_key(created_at: float, run_id: str) -> str:
    """Sorts runs by creation; the id makes it unique, so that a listing can go on behind any row."""
    return f"{round(created_at * 1_000_000):0{_MICRO_DIGITS}d}#{run_id}"


def created_at_of(created: str) -> float:
    """The time of creation that a `created` key holds, to the microsecond."""
    return int(created[:_MICRO_DIGITS]) / 1_000_000


def _checked(what: str, sk: str) -> str:
    size = len(sk.encode())
    if size > SORT_KEY_BYTES:
        raise LimitExceeded(what, size, SORT_KEY_BYTES, instead="Use shorter names.")
    return sk
