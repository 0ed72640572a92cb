"""A small shop that the type checks play with: workflows, steps, an entity, typed names."""

from dataclasses import dataclass
from datetime import timedelta

from pydantic import BaseModel

from durable import App, Branch, Break, Context, Continue, Event, NotDone, Ok, Signal, StateKey, Update


class Order(BaseModel):
    id: str
    total: int


class Receipt(BaseModel):
    order_id: str


class Label(BaseModel):
    url: str


class Approve(BaseModel):
    by: str


class Reject(BaseModel):
    why: str


@dataclass
class Poll:
    rounds: int


class Services:
    rate: float = 1.0


app = App("shop")
serving = App("serving", services=Services)
APPROVE = Signal("approve", Approve)
REJECT = Signal("reject", Reject)
MIXED = Signal("mixed", Approve | Reject | None)
RENAME = Update("rename", str, int)
SETTLED = Event("payment.settled", Order)
PROGRESS = StateKey("progress", float)


# Workflows


@app.workflow(version="2", timeout=timedelta(days=30), tags=["shop"])
async def fulfil(ctx: Context, order: Order) -> Receipt:
    return Receipt(order_id=order.id)


@app.workflow
async def again(ctx: Context, order: Order) -> Receipt:
    return await ctx.continue_as_new(again, order)


@app.workflow
async def nightly(ctx: Context) -> int:
    return 1


@app.workflow(name="tidy")
async def nothing(ctx: Context) -> None: ...


# Remote steps


@app.remote_step(queue="labels", retries=5, timeout="5m", heartbeat="30s")
def print_label(order: Order, copies: int = 1) -> Label:
    return Label(url=order.id * copies)


@app.remote_step
async def print_later(order: Order) -> Label:
    return Label(url=order.id)


# Steps


def charge(order: Order, amount: int = 1) -> str:
    return order.id * amount


async def charge_later(order: Order, *, amount: int = 1) -> bytes:
    return b"" * amount


def refund(receipt: str, order: Order, amount: int = 1) -> None: ...
def refund_later(receipt: bytes, order: Order, *, amount: int = 1) -> None: ...
def was_charged(order: Order, amount: int = 1) -> Ok[str] | NotDone:
    return NotDone()


class Bank:
    def pay(self, cents: int) -> bytes:
        return b"" * cents

    async def pay_later(self, cents: int) -> str:
        return "" * cents


bank = Bank()


async def maybe_later() -> Label | None: ...
def maybe() -> Label | None: ...


# Bodies of blocks


async def quote(ctx: Context, order: Order, carrier: str) -> int:
    return len(carrier)


async def stock(ctx: Context, sku: str) -> list[str]:
    return [sku]


async def no_arguments(ctx: Context) -> bytes:
    return b""


async def by_item(ctx: Context, sku: str) -> Label:
    return Label(url=sku)


async def counting(ctx: Context) -> Break[int] | Continue:
    return Continue()


async def forever(ctx: Context) -> None: ...


async def polling(ctx: Context, state: Poll) -> Continue[Poll] | Break[str]:
    return Continue(Poll(state.rounds + 1))


async def polling_forever(ctx: Context, state: Poll) -> Continue[Poll]:
    return Continue(state)


async def returns_nothing(ctx: Context, state: Poll) -> None: ...
async def may_forget_return(ctx: Context) -> Break[int] | None: ...


dhl = Branch("dhl", quote, Order(id="o", total=1), "dhl")
sku = Branch("sku", stock, "sku")


# Entities


@app.entity
class Cart(BaseModel):
    items: dict[str, int] = {}

    def add(self, sku: str, n: int = 1) -> int:
        return n

    async def check_out(self, ctx: Context, coupon: str) -> Receipt:
        return Receipt(order_id=coupon)

    async def ping(self) -> bool:
        return True

    def key(self, ctx: Context) -> str:
        return ctx.entity_key

    def clear(self) -> None:
        self.items = {}


@app.entity(name="Another", version=2, migrate=lambda old: old)
class Other(BaseModel):
    def operate(self, n: int) -> int:
        return n
