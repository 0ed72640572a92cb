"""The order workflow, in memory and with virtual time."""

from collections.abc import Iterator

import pytest

from durable.testing import TestEnvironment
from examples.orders.app import APPROVE, Approval, Item, Order, Parcel, Payment, app, charge, fulfil, refund, ship

ORDER = Order(order_id="A-1", customer="ada@example.com", items=[Item(sku="cup", quantity=4, cents=650)])


@pytest.fixture
def env() -> Iterator[TestEnvironment]:
    with TestEnvironment(app) as env:
        yield env


def test_an_approved_order_is_shipped(env):
    handle = env.start(fulfil, ORDER)
    handle.send(APPROVE, Approval(approved=True, by="grace"))
    receipt = handle.result()
    assert receipt.outcome == "shipped"
    assert receipt.payment.cents == 2600
    assert receipt.approved_by == "grace"


def test_an_order_that_nobody_approves_in_time_is_refunded(env):
    refunding = env.mock(refund).returns(None)
    shipping = env.mock(ship).returns(Parcel(tracking="p"))
    assert env.start(fulfil, ORDER).result().outcome == "refunded"
    assert len(refunding.calls) == 1
    assert not shipping.calls


def test_an_order_that_is_turned_down_is_refunded_without_waiting_longer(env):
    handle = env.start(fulfil, ORDER)
    handle.send(APPROVE, Approval(approved=False, by="grace"))
    before = env.now
    assert handle.result().outcome == "refunded"
    assert (env.now - before).total_seconds() < 10


def test_a_payment_service_that_fails_once_is_asked_again(env):
    charging = env.mock(charge).raises(ConnectionError("no route"))
    charging.returns(Payment(payment_id="pay-1", cents=2600))
    handle = env.start(fulfil, ORDER)
    handle.send(APPROVE, Approval(approved=True, by="grace"))
    assert handle.result().payment.payment_id == "pay-1"


def test_an_order_survives_a_crash_at_every_call(env):
    def approve(env, handle):
        env.advance(seconds=10)
        handle.send(APPROVE, Approval(approved=True, by="grace"), id="approval")

    matrix = env.run_crash_matrix(fulfil, ORDER, script=approve)
    assert matrix.crashes >= 40
