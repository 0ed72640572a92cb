"""Runs, entries, messages and settlements as the tests need them."""

from typing import Any

from durable.model.entry import Entry
from durable.model.message import StoredMessage
from durable.model.run import Run, Settlement, first_epoch
from durable.ports import Acquired, Created, Page, Store

NOW = 1_796_000_000.25
HOUR = 3600.0
MICROSECOND = 0.000_001


def a_run(run_id: str = "run-1", **fields: Any) -> Run:
    created_at = fields.pop("created_at", NOW)
    epoch = first_epoch(created_at)
    return Run(
        **{
            "id": run_id,
            "workflow": "fulfil",
            "version": "1",
            "status": "pending",
            "created_at": created_at,
            "epoch": epoch,
            "born": epoch,
            "clean_epoch": epoch,
            "writer": f"writer of {run_id}",
            "due_at": created_at + 30,
            **fields,
        }
    )


def created(store: Store, run_id: str = "run-1", **fields: Any) -> Run:
    run = a_run(run_id, **fields)
    assert store.create(run) == Created(run)
    return run


def acquire(store: Store, run_id: str = "run-1", **arguments: Any) -> Any:
    return store.acquire(
        run_id,
        **{
            "owner": "owner-1",
            "now": NOW,
            "lease_until": NOW + 150,
            "code_version": "v1",
            "due_is_near": True,
            **arguments,
        },
    )


def owned(store: Store, run_id: str = "run-1", **arguments: Any) -> Run:
    answer = acquire(store, run_id, **arguments)
    assert isinstance(answer, Acquired), answer
    return answer.run


def settlement(status: Any = "suspended", **fields: Any) -> Settlement:
    return Settlement(**{"status": status, "at": NOW + 2, "started_at": NOW + 1, **fields})


def settle(store: Store, run: Run, status: Any = "suspended", **fields: Any) -> Any:
    return store.settle(run.id, epoch=run.epoch, wakes=run.wakes, settlement=settlement(status, **fields))


def an_entry(location: str = "charge", **fields: Any) -> Entry:
    return Entry(**{"location": location, "kind": "step", "epoch": 1, "n": 1, "at": NOW, **fields})


def a_message(message_id: str = "m-1", **fields: Any) -> StoredMessage:
    return StoredMessage(**{"id": message_id, "name": "approve", "body": '"yes"', "arrived_at": NOW, **fields})


def pages(store: Store, run_id: str = "run-1", *, mailbox_only: bool = False) -> list[Page]:
    found = [store.load(run_id, mailbox_only=mailbox_only)]
    while found[-1].cursor is not None:
        found.append(store.load(run_id, cursor=found[-1].cursor, mailbox_only=mailbox_only))
    return found


def entries(store: Store, run_id: str = "run-1") -> list[Entry]:
    return [entry for page in pages(store, run_id) for entry in page.entries]


def messages(store: Store, run_id: str = "run-1") -> list[StoredMessage]:
    return [message for page in pages(store, run_id) for message in page.messages]
