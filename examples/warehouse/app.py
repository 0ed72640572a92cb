"""A shipment: charge in place, pick in two halls by children, print a label elsewhere, wait for the carrier's event."""

import asyncio
import hashlib

from pydantic import BaseModel, Field

from durable import App, Call, Context, Event, WaitTimeout, step_context

app = App("warehouse")
app.queue("printers", concurrency=2)


class Shipment(BaseModel):
    order_id: str
    cents: int = Field(gt=0)
    halls: list[str] = Field(min_length=1)
    delivery_seconds: float = Field(default=14 * 24 * 3600, ge=0)


class Picking(BaseModel):
    order_id: str
    hall: str


class Delivered(BaseModel):
    order_id: str
    signed_by: str


class Delivery(BaseModel):
    order_id: str
    payment: str
    boxes: list[str]
    label: str
    signed_by: str | None


DELIVERED = Event("carrier.delivered", Delivered)


@app.remote_step(queue="printers", timeout="30s", retries=5)
def print_label(order_id: str, boxes: int) -> str:
    return f"label for {boxes} boxes of {order_id}"


@app.workflow
async def pick(ctx: Context, picking: Picking) -> str:
    return await ctx.step(collect, picking)


@app.workflow
async def ship(ctx: Context, shipment: Shipment) -> Delivery:
    payment = await ctx.step(charge, shipment)
    boxes = await asyncio.gather(
        *(ctx.child(pick, Picking(order_id=shipment.order_id, hall=hall)) for hall in shipment.halls)
    )
    label = await ctx.call(Call(pickup_timeout="1h"), print_label, shipment.order_id, len(boxes))
    try:
        delivered = await ctx.wait_for_event(
            DELIVERED, match={"order_id": shipment.order_id}, timeout=shipment.delivery_seconds
        )
        signed_by = delivered.signed_by
    except WaitTimeout:
        signed_by = None
    return Delivery(order_id=shipment.order_id, payment=payment, boxes=list(boxes), label=label, signed_by=signed_by)


def charge(shipment: Shipment) -> str:
    del shipment
    return "pay-" + hashlib.sha256(step_context().idempotency_key.encode()).hexdigest()[:10]


def collect(picking: Picking) -> str:
    return f"box from {picking.hall}"
