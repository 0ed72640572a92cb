"""One long story that makes every function do all that it can do."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from durable.model.run import Run, first_epoch
from durable.ports import Store
from tests.security import everything
from tests.security.deployed import Deployed
from tests.security.everything import Cart

SECRET = "tr0ub4dor-in-the-payload"
LARGE = f"{SECRET} " * 20_000


def ok(answer: tuple[int, Any]) -> Any:
    status, body = answer
    assert 200 <= status < 300, answer
    return body


def tell(place: Deployed) -> None:
    an_order(place)
    asking(place)
    long_values(place)
    waiting_and_reading(place)
    failing_and_mending(place)
    going_on(place)
    ending(place)
    looking(place)
    by_other_ways(place)
    maintaining(place)


def start(place: Deployed, workflow: str, run_id: str, *given: Any, **headers: str) -> None:
    body = {"workflow": workflow, "id": run_id} | ({"input": given[0]} if given else {})
    ok(place.request("POST", "/runs", body, **headers))
    place.settle()


def go(place: Deployed, run_id: str, said: str = SECRET) -> None:
    ok(place.request("POST", f"/runs/{run_id}/messages", {"name": "go", "body": said}))
    place.settle()


def an_order(place: Deployed) -> None:
    for number in (1, 2):
        start(place, "order", f"o-{number}", {"id": "c-7", "note": SECRET}, idempotency_key=f"key-{number}")
    for number in (1, 2):
        ok(place.request("POST", f"/runs/o-{number}/updates", {"name": "rename", "arg": SECRET, "id": "u-1"}))
        place.settle()
        place.request("GET", f"/runs/o-{number}/updates/rename/u-1")
        place.event("paid", {"id": "c-7", "note": SECRET}, f"e-{number}")
        place.settle()
        go(place, f"o-{number}")
        assert ok(place.request("GET", f"/runs/o-{number}"))["status"] == "completed"


def asking(place: Deployed) -> None:
    start(place, "asks", "a-1")
    (token,) = ok(place.request("GET", "/runs/a-1/streams/tokens"))["chunks"]
    ok(place.request("POST", f"/callbacks/{token['value']}/heartbeat", {"progress": SECRET}))
    ok(place.request("POST", f"/callbacks/{token['value']}/complete", {"result": SECRET}))
    place.settle()
    hook = ok(place.request("GET", "/runs/a-1/state/links"))["value"]["hook"]
    ok(place.request("POST", f"/hooks/{hook.rpartition('/')[2]}", {"said": SECRET}))
    place.settle()
    assert ok(place.request("GET", "/runs/a-1"))["status"] == "completed"


def long_values(place: Deployed) -> None:
    start(place, "large", "l-1", LARGE)
    assert ok(place.request("GET", "/runs/l-1"))["output"] == LARGE
    place.event("paid", {"id": "nobody", "note": LARGE[:200_000]}, "e-large")
    place.settle()


def waiting_and_reading(place: Deployed) -> None:
    start(place, "sleepy", "s-1")
    start(place, "reads", "r-1")
    for _ in range(6):
        go(place, "r-1")
    start(place, "reads", "r-2")
    for _ in range(4):
        go(place, "r-2")
    ok(place.request("POST", "/runs/r-2/messages", {"name": "other", "body": SECRET}))
    place.settle()
    ok(place.request("GET", "/runs/r-2/history"))


def failing_and_mending(place: Deployed) -> None:
    start(place, "fails", "f-1")
    go(place, "f-1")
    assert ok(place.request("GET", "/runs/f-1"))["status"] == "failed"
    ok(place.request("GET", "/runs?status=failed"))
    everything.broken[0] = False
    ok(place.request("POST", "/runs/f-1/retry"))
    place.settle()
    everything.broken[0] = True
    assert ok(place.request("GET", "/runs/f-1"))["status"] == "completed"
    start(place, "books", "b-1")


def going_on(place: Deployed) -> None:
    start(place, "goes_on", "g-1", 1)
    go(place, "g-1")
    go(place, "g-1")
    assert ok(place.request("GET", "/runs/g-1"))["status"] == "completed"


def ending(place: Deployed) -> None:
    for mode in ("graceful", "compensate", "terminate"):
        start(place, "reads", f"e-{mode}")
        ok(place.request("POST", f"/runs/e-{mode}/cancel", {"mode": mode}))
        place.settle()
    start(place, "sleepy", "e-5")
    ok(place.request("POST", "/runs/e-5/resume"))
    ok(place.request("DELETE", "/runs/e-graceful"))
    ok(place.request("DELETE", "/runs/l-1"))


def looking(place: Deployed) -> None:
    for path in (
        "/health", "/workflows", "/runs", "/runs?workflow=order", "/count", "/runs/o-1/export", "/runs/o-1/state", "/reviews",
        "/runs?workflow=order&where=" + quote("amount == 1"), "/runs/o-1/streams/talk",
    ):  # fmt: skip
        ok(place.request("GET", path))


def by_other_ways(place: Deployed) -> None:
    ok(place.request("POST", "/events/paid", {"payload": {"id": "x", "note": SECRET}, "buffer": 60}))
    cart = place.container("ApiFunction").client.entity(Cart, "c-2")
    cart.signal(Cart.add, SECRET)
    place.settle()
    message = {"name": "go", "body": SECRET}
    ok(place.request("POST", "/runs", {"workflow": "fails", "id": "w-1", "message": message}))
    ok(place.request("POST", "/runs", {"workflow": "large", "id": "c-1", "input": SECRET}))
    place.settle(steps=False)
    claimed(place)
    place.settle()
    start(place, "scales", "sc-1")
    ok(place.request("POST", "/runs", {"workflow": "labels", "id": "la-1"}))
    place.settle(steps=False)
    claimed(place)  # which lets the next in its lane go
    place.settle()
    place.garbage()


def claimed(place: Deployed) -> None:
    token = ok(place.request("POST", "/queues/default/claim", {}))["token"]
    ok(place.request("POST", f"/tasks/{token}/heartbeat", {"progress": SECRET}))
    ok(place.request("POST", f"/tasks/{token}/complete", {"result": SECRET}))


def maintaining(place: Deployed) -> None:
    store: Store = place.container("ApiFunction").ports.store
    now = place.container("ApiFunction").ports.clock.now()
    epoch = first_epoch(now)
    old = Run(
        id="old", workflow="child", version="1", status="completed", created_at=now, epoch=epoch, born=epoch,
        clean_epoch=epoch, writer="w", due_at=now - 100, finished_at=now - 100,
    )  # fmt: skip
    store.create(old, input=json.dumps(SECRET))
    store.put_state("old", "k", "1", epoch=epoch)
    for run in (
        replace(old, id="orphan", status="pending", finished_at=None),
        replace(old, id="waits", status="suspended", finished_at=None, due_at=None, waiting_for=("child:x",)),
        replace(old, id="needed", parent="waits", parent_location="x", watched=True),
        replace(old, id="first", successor="first~2"),
        replace(old, id="first~2", lineage="first", status="suspended", due_at=None, finished_at=None),
    ):
        store.create(run)
    store.put_state("first", "k", "1", epoch=epoch)
    place.admin.make_s3().put_object(Bucket=str(place.settings.bucket), Key="old/1", Body=b"data")
    place.sweep()
    place.settle()
    assert store.get("old") is None
