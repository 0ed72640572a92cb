"""PAY-01, PAY-02: whatever the size of a value, on whatever way: it comes back whole, or is refused by a named limit."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random  # noqa: TID251 - seeded
from typing import Any

import pytest
from moto import mock_aws

from durable import DurableError, LimitExceeded, RunBlocked, RunError
from durable.aws import make_clients
from durable.model.limits import PAYLOAD_BYTES
from durable.ports import NoBlobs
from durable.testing import TestEnvironment
from durable.testing.services import in_memory
from tests.contract.worlds import AwsWorld, moto_world
from tests.limits.channels import CHANNELS, app
from tests.scenarios.emulated import emulated
from tests.sealed.sealing import KeyCodec

TEXTURES: dict[str, Callable[[int], str]] = {
    "plain": lambda size: "x" * size,
    "quotes": lambda size: '"' * (size // 2),
    "emoji": lambda size: "😀" * (size // 4),
    "noise": lambda size: Random(size).randbytes(size // 2 + 1).hex()[:size],
}
"""Texts of so many bytes as JSON."""

ITS_OWN_LIMIT = {"event": "the payload of event", "entity": "what entity Box holds"}
"""Ways with a limit of their own: an event is told to many, the state of an entity is written at every call."""

SWEPT = [PAYLOAD_BYTES + offset for offset in (-2048, -1024, -512, -128, -64, -8, -2, 0, 64, 2048)]


def play(env: TestEnvironment, channel: str, value: Any) -> Any:
    """What comes back, or the refusal that names a limit; anything else is a fault."""
    refusal: Any = None
    try:
        assert CHANNELS[channel](env, value) == value
    except DurableError as refused:
        refusal = refused
    assert refusal is None or isinstance(refusal, LimitExceeded | RunError), repr(refusal)
    assert refusal is None or "; the limit is " in str(refusal), str(refusal)
    return refusal


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("texture", TEXTURES)
def test_pay_02_no_size_near_the_limit_is_a_fault(channel: str, texture: str) -> None:
    for size in SWEPT[:: 1 if channel in {"step result", "message", "entity"} else 3]:
        refusal = play(TestEnvironment(app), channel, TEXTURES[texture](size - 2))
        assert refusal is None or ITS_OWN_LIMIT[channel] in str(refusal), refusal


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("texture", TEXTURES)
def test_pay_02_without_a_bucket_it_is_refused_or_comes_back(channel: str, texture: str) -> None:
    for size in (PAYLOAD_BYTES - 2048, PAYLOAD_BYTES, PAYLOAD_BYTES + 2048):
        env = TestEnvironment(app, services=replace(in_memory(), blobs=NoBlobs()))
        refusal = play(env, channel, TEXTURES[texture](size - 2))
        if size > PAYLOAD_BYTES + 10:
            assert refusal is not None
            assert channel in ITS_OWN_LIMIT or "DURABLE_BUCKET" in str(refusal)
        if isinstance(refusal, RunBlocked):
            continue  # nothing is lost: with a bucket it goes on
        if refusal is not None and channel in {"input", "message that starts its run"}:
            assert not env.world.services.memory.runs


@pytest.mark.parametrize("channel", CHANNELS)
def test_pay_02_sealing_makes_values_larger_and_none_a_fault(channel: str) -> None:
    app.codec = KeyCodec("k")
    try:
        for size in (200, 4_000, 190_000, PAYLOAD_BYTES - 64):
            refusal = play(TestEnvironment(app), channel, TEXTURES["noise"](size))
            assert refusal is None or channel in ITS_OWN_LIMIT
    finally:
        app.codec = None


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsWorld]:
    with mock_aws():
        yield moto_world(make_clients(), stack="limits")


@pytest.mark.moto
@pytest.mark.parametrize("channel", CHANNELS)
def test_pay_01_in_a_table_too(aws: AwsWorld, channel: str) -> None:
    for texture, size in (("noise", PAYLOAD_BYTES - 2), ("quotes", PAYLOAD_BYTES), ("noise", 1_500_000)):
        refusal = play(TestEnvironment(app, services=emulated(aws)), channel, TEXTURES[texture](size))
        assert refusal is None or channel in ITS_OWN_LIMIT
