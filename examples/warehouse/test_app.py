"""The shipment in memory, with time skipped."""

from durable.testing import TestEnvironment
from examples.warehouse.app import DELIVERED, Delivered, Shipment, app, print_label, ship

SHIPMENT = Shipment(order_id="W-1", cents=900, halls=["north", "south"])


def test_a_shipment_is_delivered() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(ship, SHIPMENT)
        env.advance("1h")
        env.publish_event(DELIVERED, Delivered(order_id="W-2", signed_by="somebody else"))
        env.publish_event(DELIVERED, Delivered(order_id="W-1", signed_by="ada"))
        delivery = handle.result()
        assert (delivery.boxes, delivery.signed_by) == (["box from north", "box from south"], "ada")
        assert delivery.label == "label for 2 boxes of W-1"


def test_nobody_signs() -> None:
    with TestEnvironment(app) as env:
        env.mock(print_label).returns("a label")
        assert env.start(ship, SHIPMENT).result().signed_by is None
