"""An order: charge the card, let a cooling-off period pass, ask for approval, ship."""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from durable import App, Context, Signal, Step, WaitTimeout, step_context

app = App("orders")


class Item(BaseModel):
    sku: str
    quantity: int = Field(default=1, ge=1)
    cents: int = Field(gt=0)


class Order(BaseModel):
    order_id: str
    customer: str
    items: list[Item] = Field(min_length=1)
    cooling_off_seconds: float = Field(default=3, ge=0)
    approval_seconds: float = Field(default=2 * 24 * 3600, ge=0)
    chaos: Literal["none", "kill-once"] = "none"
    """`kill-once` makes the process die in the middle of the charge, once for each run."""


class Approval(BaseModel):
    approved: bool
    by: str


class Payment(BaseModel):
    payment_id: str
    cents: int


class Parcel(BaseModel):
    tracking: str


class Receipt(BaseModel):
    order_id: str
    outcome: Literal["shipped", "refunded"]
    payment: Payment
    parcel: Parcel | None = None
    approved_by: str | None = None


APPROVE = Signal("approve", Approval)

# Outside services answer within seconds; one that does not is asked again.
OUTSIDE = Step(timeout="3s", retries=3)


@app.workflow(version="1")
async def fulfil(ctx: Context, order: Order) -> Receipt:
    payment = await ctx.step(OUTSIDE, charge, order)
    await ctx.sleep(order.cooling_off_seconds, name="cooling-off")
    try:
        approval = await ctx.wait_for_signal(APPROVE, timeout=order.approval_seconds)
    except WaitTimeout:
        return await refunded(ctx, order, payment)
    if not approval.approved:
        return await refunded(ctx, order, payment)
    parcel = await ctx.step(OUTSIDE, ship, order)
    return Receipt(order_id=order.order_id, outcome="shipped", payment=payment, parcel=parcel, approved_by=approval.by)


async def refunded(ctx: Context, order: Order, payment: Payment) -> Receipt:
    await ctx.step(OUTSIDE, refund, payment)
    return Receipt(order_id=order.order_id, outcome="refunded", payment=payment)


def charge(order: Order) -> Payment:
    # A payment service takes an idempotency key, and gives the same payment for the same key however often it is asked.
    payment_id = "pay-" + _digest(step_context().idempotency_key)
    if order.chaos == "kill-once":
        _die_once()
    return Payment(payment_id=payment_id, cents=sum(item.quantity * item.cents for item in order.items))


def ship(order: Order) -> Parcel:
    del order
    return Parcel(tracking="parcel-" + _digest(step_context().idempotency_key))


def refund(payment: Payment) -> None:
    del payment


def _die_once() -> None:
    """Ends this process the hardest way, between the effect and its record, unless it has done so for this step before.

    The marker is a file, because only a file outlives the process, here as on Lambda.
    """
    step = step_context()
    marker = Path(tempfile.gettempdir()) / f"durable-killed-{_digest(step.run_id + step.idempotency_key)}"
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return
    os._exit(137)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]
