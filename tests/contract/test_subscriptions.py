"""Who waits for which event, which events are kept for runs that come late, and who has had them."""

from dataclasses import replace

import pytest

from durable.errors import LimitExceeded
from durable.model.limits import PAYLOAD_BYTES
from durable.model.subscription import Awaited, BufferedEvent, MatchKey, Subscription, Taken
from durable.ports import Store
from tests.contract.builders import HOUR, NOW

ORDER = MatchKey((("order", "Order"), ("id",)), "o-1")
PAID = MatchKey((("paid",),), True)
EVENT = BufferedEvent(event="payment.settled", id="e-1", body='{"text": "ü"}', at=NOW, until=NOW + HOUR)


def waiting(run_id: str = "run-1", location: str = "poll[3]/wait", event: str = "payment.settled") -> Subscription:
    awaited = Awaited(event=event, match=(ORDER, PAID, MatchKey((("n",),), 1.5), MatchKey((("none",),), None)))
    return Subscription(awaited=awaited, run_id=run_id, location=location, since=NOW + 0.25)


def listed(store: Store, event: str = "payment.settled", limit: int = 100) -> list[Subscription]:
    page = store.subscriptions(event, limit=limit)
    found = list(page.subscriptions)
    while page.cursor is not None:
        page = store.subscriptions(event, cursor=page.cursor, limit=limit)
        found += page.subscriptions
    return found


def test_who_waits_is_listed_as_it_was_put(store: Store) -> None:
    store.put_subscription(waiting())
    store.put_subscription(waiting())
    assert listed(store) == [waiting()]
    assert listed(store, "payment") == []


def test_who_waits_no_longer_is_off_the_list(store: Store) -> None:
    store.put_subscription(waiting())
    store.put_subscription(waiting(location="other"))
    for _ in range(2):
        store.delete_subscription("payment.settled", "run-1", "poll[3]/wait")
    assert listed(store) == [waiting(location="other")]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_hold_everybody_once(store: Store, limit: int) -> None:
    everybody = [waiting(f"run-{n}") for n in range(7)]
    for one in everybody:
        store.put_subscription(one)
    assert listed(store, limit=limit) == everybody


def test_who_leaves_between_two_pages_is_no_trouble(store: Store) -> None:
    for n in range(4):
        store.put_subscription(waiting(f"run-{n}"))
    page = store.subscriptions("payment.settled", limit=2)
    store.delete_subscription("payment.settled", "run-1", "poll[3]/wait")
    rest = store.subscriptions("payment.settled", cursor=page.cursor, limit=2)
    assert [one.run_id for one in (*page.subscriptions, *rest.subscriptions)] == ["run-0", "run-1", "run-2", "run-3"]


def test_kept_events_come_in_order_until_their_time_is_up(store: Store) -> None:
    later, earlier = replace(EVENT, id="a", at=NOW + 1, until=NOW + 2 * HOUR), EVENT
    store.put_buffered(later)
    store.put_buffered(earlier)
    assert store.buffered("payment.settled", now=NOW) == [earlier, later]
    assert store.buffered("payment.settled", now=NOW + HOUR) == [later]
    assert store.buffered("payment", now=NOW) == []


def test_an_event_is_kept_once(store: Store) -> None:
    store.put_buffered(EVENT)
    store.put_buffered(replace(EVENT, body="2", at=NOW + 9))
    assert store.buffered("payment.settled", now=NOW) == [EVENT]


def test_an_event_that_somebody_waited_for_is_not_kept_again(store: Store) -> None:
    store.put_buffered(EVENT)
    for _ in range(2):
        store.close_buffered(EVENT)
        store.put_buffered(EVENT)
    assert store.buffered("payment.settled", now=NOW) == []


def test_large_payloads_are_kept_and_larger_ones_refused(store: Store) -> None:
    large = replace(EVENT, body='"' + "x" * (PAYLOAD_BYTES - 2) + '"')
    store.put_buffered(large)
    assert store.buffered("payment.settled", now=NOW) == [large]
    with pytest.raises(LimitExceeded, match="payment"):
        store.put_buffered(replace(EVENT, id="e-2", body=large.body + " "))


def test_the_first_of_a_run_that_had_an_event_is_noted(store: Store) -> None:
    def take(run_id: str, location: str, at: float, event_id: str = "e-1") -> Taken:
        return store.take_event("payment.settled", event_id, run_id, location, at=at, expires_at=NOW + HOUR)

    first = Taken("first", NOW)
    assert take("run-1", "first", NOW) == first
    assert take("run-1", "second", NOW + 1) == first
    assert take("run-1", "first", NOW + 2) == first
    assert take("run-2", "second", NOW + 3) == Taken("second", NOW + 3)
    assert take("run-1", "second", NOW + 4, "e-2") == Taken("second", NOW + 4)
