"""A scene for every method of the ports: what is there before the call, and the call itself."""

from collections.abc import Callable
from typing import Any

from durable.model.run import Cut, Run, Watcher
from durable.model.transaction import TransactItem
from durable.ports import Store
from tests.contract.builders import (
    HOUR,
    NOW,
    a_message,
    a_run,
    acquire,
    an_entry,
    created,
    owned,
    settle,
    settlement,
)

Act = Callable[[Any], Any]
"""The call, on a port whose requests may fail."""

Scene = Callable[[Any], Act]
"""Makes everything ready, on a port that works, and gives the call."""

SCENES: dict[str, Scene] = {}
"""By method, as in `store.create`, perhaps with what is special about the call: `store.create, with a key`."""

STOCK = "stock"
"""A table of the author's own."""

FIRST_TURN = a_run().epoch + 1
"""The epoch of a new run's first turn."""


def scene(name: str) -> Callable[[Scene], Scene]:
    def add(function: Scene) -> Scene:
        SCENES[name] = function
        return function

    return add


def on_a_new_run(name: str, act: Act, **fields: Any) -> None:
    def arrange(store: Store) -> Act:
        created(store, **fields)
        return act

    SCENES[name] = arrange


def on_my_run(name: str, act: Callable[[Any, Run], Any], before: Callable[[Any], Any] = lambda _: None) -> None:
    """A turn holds the run."""

    def arrange(store: Store) -> Act:
        created(store)
        mine = owned(store)
        before(store)
        return lambda faulty: act(faulty, mine)

    SCENES[name] = arrange


def on_an_ended_run(name: str, act: Act, status: str = "failed", **fields: Any) -> None:
    def arrange(store: Store) -> Act:
        created(store)
        settle(store, owned(store), status, **fields)
        return act

    SCENES[name] = arrange


# Runs come, are taken, and end


@scene("store.create")
def _(store: Store) -> Act:
    return lambda faulty: faulty.create(a_run())


@scene("store.create, with input and key")
def _(store: Store) -> Act:
    return lambda faulty: faulty.create(a_run(input_stored=True), input='"in"', idempotency_key="key")


@scene("store.create, of a run that exists")
def _(store: Store) -> Act:
    created(store, writer="another")
    return lambda faulty: faulty.create(a_run(input_stored=True), input='"in"')


@scene("store.create, under a key that is taken")
def _(store: Store) -> Act:
    assert store.create(a_run("run-0"), idempotency_key="key")
    return lambda faulty: faulty.create(a_run(), idempotency_key="key")


@scene("store.continue_as_new")
def _(store: Store) -> Act:
    created(store)
    mine = owned(store)
    successor = a_run("run-1~2", input_stored=True)
    return lambda faulty: faulty.continue_as_new(
        "run-1", epoch=mine.epoch, wakes=0, settlement=settlement("completed"), successor=successor, input='"in"'
    )


def reopen(store: Any, **arguments: Any) -> Any:
    return store.reopen("run-1", owner="mender", now=NOW + 9, lease_until=NOW + 99, **arguments)


on_a_new_run("store.get", lambda store: store.get("run-1"))
on_a_new_run("store.acquire", acquire)
on_a_new_run("store.acquire, with a wrong guess", acquire, due_at=NOW + 9 * HOUR)
on_my_run("store.announce", lambda store, _: store.announce("run-1", now=NOW + 1))
on_my_run("store.settle", lambda store, mine: settle(store, mine, "completed", output='"out"'))
on_my_run("store.release", lambda store, mine: store.release("run-1", epoch=mine.epoch, now=NOW + 5))
on_an_ended_run("store.reopen", reopen)
on_an_ended_run("store.reopen, however it ended", lambda store: reopen(store, any_ended=True), "completed")
on_a_new_run("store.request_cancel", lambda store: store.request_cancel("run-1", mode="compensate", now=NOW + 1))
on_my_run(
    "store.request_cancel, while it is held",
    lambda store, _: store.request_cancel("run-1", mode="graceful", now=NOW + 1),
)
on_my_run("store.terminate", lambda store, _: store.terminate("run-1", now=NOW + 1, reason="asked to"))
on_a_new_run("store.watch", lambda store: store.watch("run-1", "run-1", Watcher("parent", "child")))
on_an_ended_run(
    "store.clear_outbox",
    lambda store: store.clear_outbox("run-1", epoch=FIRST_TURN),
    outbox="graceful",
    due_at=NOW + 3,
)
on_an_ended_run("store.unblock", lambda store: store.unblock("run-1", now=NOW + 5), "blocked", code_version="v1")


@scene("store.watchers")
def _(store: Store) -> Act:
    created(store)
    for parent in ("parent-1", "parent-2"):
        store.watch("run-1", "run-1", Watcher(parent, "child"))
    return lambda faulty: faulty.watchers("run-1")


@scene("store.delete_run")
def _(store: Store) -> Act:
    created(store)
    settle(store, owned(store), "completed")
    for n in range(3):
        store.put_entry("run-1", an_entry(f"step-{n}"))
    store.put_reply("run-1", "m-1", "done", expires_at=NOW)
    store.bury("run-1", ["m-1", "m-2"])
    store.watch("run-1", "run-1", Watcher("parent", "child"))
    store.start_task("run-1", "print:1:1", worker="w", now=NOW, expires_at=NOW + HOUR)
    return lambda faulty: faulty.delete_run("run-1")


@scene("store.empty_run")
def _(store: Store) -> Act:
    created(store)
    settle(store, owned(store), "completed")
    for n in range(3):
        store.put_entry("run-1", an_entry(f"step-{n}"))
    return lambda faulty: faulty.empty_run("run-1")


on_an_ended_run("store.expired_runs", lambda store: store.expired_runs(before=NOW + 9, limit=9), due_at=NOW + 9)
on_an_ended_run(
    "store.postpone_deletion",
    lambda store: store.postpone_deletion("run-1", epoch=FIRST_TURN, until=NOW + HOUR),
    due_at=NOW + 9,
)
on_an_ended_run(
    "store.mark_for_deletion", lambda store: store.mark_for_deletion("run-1", epoch=FIRST_TURN, now=NOW + HOUR)
)

# Histories and mailboxes

on_a_new_run("store.get_payload", lambda store: store.get_payload("run-1", "input"))
on_my_run("store.put_payload", lambda store, mine: store.put_payload("run-1", "output", '"out"', epoch=mine.epoch))
on_my_run("store.put_entry", lambda store, mine: store.put_entry("run-1", an_entry(epoch=mine.epoch, value='"v"')))
on_my_run(
    "store.record_fences",
    lambda store, mine: store.record_fences("run-1", epoch=mine.epoch, fences={mine.epoch - 1: 3}),
)
on_my_run("store.record_floor", lambda store, mine: store.record_floor("run-1", epoch=mine.epoch, n=7))
on_my_run("store.mark_pruned", lambda store, mine: store.mark_pruned("run-1", epoch=mine.epoch))
on_my_run("store.clear_carries", lambda store, mine: store.clear_carries("run-1", epoch=mine.epoch))
on_my_run(
    "store.annotate",
    lambda store, mine: store.annotate("run-1", epoch=mine.epoch, tags=("a", "b"), attributes={"n": 1}),
)
on_my_run(
    "store.record_cut",
    lambda store, mine: store.record_cut("run-1", epoch=mine.epoch, cut=Cut(mine.epoch, 1, mine.epoch), unburied=[]),
)
MANY = [f"m-{n}" for n in range(120)]
on_my_run(
    "store.record_cut, with more tombstones than a transaction takes",
    lambda store, mine: store.record_cut("run-1", epoch=mine.epoch, cut=Cut(mine.epoch, 1, mine.epoch), unburied=MANY),
    lambda store: store.bury("run-1", MANY),
)
on_my_run("store.put_message", lambda store, _: store.put_message("run-1", a_message()))
on_a_new_run(
    "store.keep_compensations",
    lambda store: store.keep_compensations("run-1", [an_entry(f"step-{n}", n=n) for n in range(30)]),
)
on_a_new_run("store.bury", lambda store: store.bury("run-1", MANY))
on_a_new_run("store.bury, of one", lambda store: store.bury("run-1", MANY[:1]))
on_a_new_run("store.put_reply", lambda store: store.put_reply("run-1", "m-1", "done", expires_at=NOW + HOUR))


@scene("store.load")
def _(store: Store) -> Act:
    created(store)
    store.put_entry("run-1", an_entry())
    store.put_message("run-1", a_message())
    return lambda faulty: faulty.load("run-1")


@scene("store.transact")
def _(store: Store) -> Act:
    created(store)
    entry = an_entry("reserve", kind="transact", epoch=owned(store).epoch)
    sold: TransactItem = {
        "Update": {
            "TableName": STOCK, "Key": {"sku": "book"}, "UpdateExpression": "ADD sold :one",
            "ExpressionAttributeValues": {":one": 1},
        }
    }  # fmt: skip
    return lambda faulty: faulty.transact("run-1", entry, [sold])


@scene("store.delete_messages")
def _(store: Store) -> Act:
    ids = [f"m-{n}" for n in range(30)]
    for message_id in [*ids, "kept"]:
        store.put_message("run-1", a_message(message_id))
    return lambda faulty: faulty.delete_messages("run-1", ids)


@scene("store.delete_entries")
def _(store: Store) -> Act:
    for n in range(3):
        store.put_entry("run-1", an_entry(f"step-{n}"))
    return lambda faulty: faulty.delete_entries("run-1", ["step-0", "step-2"], epoch=1)


@scene("store.buried")
def _(store: Store) -> Act:
    store.bury("run-1", ["m-1", "m-3"])
    return lambda faulty: faulty.buried("run-1", MANY)


@scene("store.get_reply")
def _(store: Store) -> Act:
    store.put_reply("run-1", "m-1", "done", expires_at=NOW + HOUR)
    return lambda faulty: faulty.get_reply("run-1", "m-1")
