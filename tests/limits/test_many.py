"""PAY-11, SCL-01: thousands of entries and messages of one run are paged, in order, and cost what they should."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from durable import App, Context, Signal
from durable.aws import make_clients
from durable.model.message import StoredMessage
from durable.testing import TestEnvironment
from tests.contract.worlds import AwsWorld, moto_world
from tests.scenarios.emulated import emulated

GO = Signal("go", Any)
app = App("many")


def nothing(n: int) -> int:
    return n


@app.workflow
async def steps(ctx: Context, count: int) -> int:
    total = 0
    for n in range(count):
        total += await ctx.step(nothing, n)
    await ctx.wait_for_signal(GO)
    return total


@app.workflow
async def batches(ctx: Context, count: int) -> list[int]:
    await ctx.sleep("1 day")
    seen: list[int] = []
    while len(seen) < count:
        seen += [message.body for message in await ctx.mailbox.next_batch(GO, count=100, timeout="1h")]
    return seen


@app.workflow
async def echo(ctx: Context, text: str) -> str:
    stepped = await ctx.step("same", str, text)
    message = await ctx.mailbox.next(GO)
    return stepped[:-1] + message.body[-1]


def test_scl_01_five_thousand_entries_are_read_in_pages_and_replayed_cold() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(steps, 5_000, id="r")
        env.run_until_idle()
        assert len(env.history("r")) == 5_000
        env.restart()
        handle.send(GO, 1)
        before = len(env.calls)
        assert handle.result() == sum(range(5_000))
        turn = Counter(env.calls[before:])
        assert turn["store.put_entry"] == turn["store.acquire"] == turn["store.settle"] == 1
        assert 1 < turn["store.load"] < 10
        assert len(env.export("r")["entries"]) == 5_001


def test_ten_thousand_messages_wait_in_one_mailbox_and_come_in_order() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(batches, 10_000, id="r")
        env.run_until_idle()
        for n in range(10_000):
            message = StoredMessage(id=f"m-{n:05d}", name="go", body=str(n), arrived_at=env.now.timestamp())
            env.world.services.store.put_message("r", message)
        before = len(env.calls)
        assert handle.result() == list(range(10_000))
        cost = Counter(env.calls[before:])
        assert cost["store.put_entry"] == 101
        assert cost["store.acquire"] == 1
        assert 1 < cost["store.load"] < 20
        assert env.get("r").undelivered == 0


def test_messages_that_nobody_waits_for_cost_a_turn_a_batch() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(batches, 1_000, id="r")
        env.run_until_idle()
        before = len(env.calls)
        for n in range(1_000):
            handle.send(GO, n)
        env.run_until_idle()
        cost = Counter(env.calls[before:])
        assert cost["store.put_message"] == 1_000
        assert cost["store.acquire"] == cost["store.settle"] == 100
        assert cost["store.load"] <= 200
        assert handle.result() == list(range(1_000))


@pytest.fixture
def aws() -> Iterator[AwsWorld]:
    with mock_aws():
        yield moto_world(make_clients(), stack="many")


@pytest.mark.moto
def test_what_a_megabyte_costs(aws: AwsWorld) -> None:
    asked: Counter[str] = Counter()
    services = emulated(aws)
    for client in (aws.clients.dynamodb, aws.clients.make_s3()):
        count_requests(client, asked)
    s3: Any = services.blobs
    count_requests(s3._client, asked)
    with TestEnvironment(app, services=services) as env:
        text = "x" * 1_000_000
        handle = env.start(echo, text, id="r")
        assert take(asked) == {"s3.PutObject": 1, "dynamodb.TransactWriteItems": 1}, "start: input and record"
        env.run_until_idle()
        first = take(asked)
        assert (first["s3.GetObject"], first["s3.PutObject"]) == (1, 1), "the input is read, the result is put"
        env.restart()
        handle.send(GO, text)
        assert take(asked)["s3.PutObject"] == 1, "the message"
        assert handle.result() == text
        second = take(asked)
        assert (second["s3.GetObject"], second["s3.PutObject"]) == (4, 1), (
            "input, result, message; the output, read back"
        )


def count_requests(client: Any, asked: Counter[str]) -> None:
    client.meta.events.register(
        "request-created", lambda event_name, **_: asked.update([event_name.removeprefix("request-created.")])
    )


def take(asked: Counter[str]) -> Counter[str]:
    taken = Counter(asked)
    asked.clear()
    return taken
