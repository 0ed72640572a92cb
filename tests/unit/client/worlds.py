"""A client over the ports in memory, with the queues' contents at hand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from pydantic import BaseModel

from durable.adapters.memory import MemoryRunQueue, MemoryStore, MemoryTimers, VirtualClock
from durable.app import App
from durable.client import Client
from durable.context import Context
from durable.errors import StoreUnavailable
from durable.model.entry import Entry
from durable.model.envelope import Envelope, from_body
from durable.model.run import Settlement
from durable.ports import Acquired, Ports, Settled


class Order(BaseModel):
    id: str
    total: int = 1


class Receipt(BaseModel):
    order_id: str


app = App("shop")


@app.workflow(tags=["shop"])
async def fulfil(ctx: Context, order: Order) -> Receipt:
    return Receipt(order_id=order.id)


@app.workflow
async def nightly(ctx: Context) -> int:
    return 1


class LossyRunQueue(MemoryRunQueue):
    """A queue whose next sends fail."""

    failures = 0

    def send(self, envelope: Envelope) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("the queue did not answer")
        super().send(envelope)


@dataclass
class World:
    client: Client
    store: MemoryStore
    runs: LossyRunQueue
    clock: VirtualClock

    @property
    def sent(self) -> list[Envelope]:
        return [from_body(message.body) for message in self.runs.pending]

    def take_turn(self, run_id: str, entries: Sequence[Entry] = (), *, payload: str | None = None, **end: Any) -> int:
        """What the engine does to a run, without its code; the epoch of the turn."""
        now = self.clock.now()
        acquired = self.store.acquire(
            run_id, owner=f"owner{now}", now=now, lease_until=now + 60, code_version="c", due_is_near=True
        )
        assert isinstance(acquired, Acquired)
        epoch = acquired.run.epoch
        for entry in entries:
            self.store.put_entry(run_id, replace(entry, epoch=epoch))
        if payload is not None:
            self.store.put_payload(run_id, "output", payload, epoch=epoch)
        settlement = Settlement(**{
            "status": "suspended", "at": now, "started_at": now, "output_stored": payload is not None, **end
        })  # fmt: skip
        assert self.store.settle(run_id, epoch=epoch, wakes=None, settlement=settlement) == Settled()
        return epoch


def new_world() -> World:
    clock, numbers = VirtualClock(), count(1)
    store, runs = MemoryStore(page_size=3), LossyRunQueue(clock)
    new_id = lambda: f"id{next(numbers)}"  # noqa: E731 - one line says it
    timers = MemoryTimers(clock, new_id, runs)
    ports = Ports(store=store, runs=runs, timers=timers, clock=clock, new_id=new_id)
    return World(Client(app, ports), store, runs, clock)
