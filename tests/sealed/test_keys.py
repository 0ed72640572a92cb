"""What becomes of a run whose payloads cannot be opened: it is blocked and says why, and goes on with the right key."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from durable import (
    App,
    Context,
    PayloadUnreadable,
    RunBlocked,
    RunFailed,
    SealingFailed,
    Signal,
    StateKey,
    Step,
    StoreUnavailable,
)
from durable.testing import TestEnvironment
from tests.sealed.sealing import KeyCodec

GO = Signal("go", str)
app = App("keys")


def double(text: str) -> str:
    return text * 2


def undo_double(result: str, text: str) -> None:
    del result, text


@app.workflow
async def patient(ctx: Context, text: str) -> str:
    doubled = await ctx.step(Step(retries=0).undo(undo_double), double, text)
    go = await ctx.wait_for_signal(GO)
    if go == "fail":
        raise ValueError(go)
    return doubled + go


@app.workflow
async def publishes(ctx: Context) -> None:
    ctx.set_state(StateKey("secret", str), "Ada")


@app.workflow
async def parent(ctx: Context, text: str) -> str:
    return await ctx.child(patient, text, id="child")


def under(env: TestEnvironment, codec: Any) -> None:
    app.codec = codec
    env.deploy(app)


@pytest.fixture
def env() -> TestEnvironment:
    app.codec = KeyCodec("right")
    return TestEnvironment(app)


@pytest.mark.parametrize("wrong", [KeyCodec("wrong"), None], ids=["another key", "no codec"])
def test_a_run_is_blocked_and_goes_on_with_the_right_key(env: TestEnvironment, wrong: KeyCodec | None) -> None:
    handle = env.start(patient, "ab", id="r")
    env.run_until_idle()
    handle.send(GO, "!")
    under(env, wrong)
    with pytest.raises(RunBlocked, match=r"a stored value cannot be read: .*codec.* Nothing is lost"):
        handle.result()
    under(env, KeyCodec("right"))
    assert handle.result() == "abab!"


def test_what_waits_for_its_first_turn_is_blocked_too(env: TestEnvironment) -> None:
    handle = env.start(patient, "ab" * 500, id="r")
    under(env, KeyCodec("wrong"))
    with pytest.raises(RunBlocked, match="cannot be read"):
        handle.result()
    under(env, KeyCodec("right"))
    handle.send(GO, "!")
    assert handle.result() == "ab" * 1000 + "!"


def test_the_record_can_be_read_by_those_who_cannot_read_its_payloads(env: TestEnvironment) -> None:
    handle = env.start(patient, "ab", id="r")
    env.start(publishes, id="f").result()
    handle.send(GO, "fail")
    with pytest.raises(RunFailed, match="ValueError: fail"):
        handle.result()
    under(env, KeyCodec("wrong"))
    run = env.get("r")
    assert (run.status, run.error and run.error.type) == ("failed", "ValueError")
    assert "WrongKey" in (run.reason or "")
    with pytest.raises(PayloadUnreadable):
        env.get_state("f", "secret")


@pytest.mark.parametrize("mode", ["graceful", "compensate"])
def test_no_run_ends_while_nobody_knows_what_it_has_done(env: TestEnvironment, mode: Any) -> None:
    handle = env.start(patient, "ab", id="r")
    env.run_until_idle()
    handle.send(GO, "!")
    under(env, KeyCodec("wrong"))
    env.run_until_idle()
    handle.cancel(mode)
    env.advance("5m")
    assert env.get("r").status == "blocked"
    under(env, KeyCodec("right"))
    env.advance("5m")
    assert env.get("r").status == "cancelled"
    undone = [entry.key for entry in env.history("r") if entry.mark == "!"]
    assert undone == (["double!"] if mode == "compensate" else [])


def test_a_lost_turn_is_fenced_although_nothing_of_it_can_be_read(env: TestEnvironment) -> None:
    handle = env.start(patient, "ab", id="r")
    env.crash_at(3, after=True)
    env.run_until_idle()
    under(env, KeyCodec("wrong"))
    env.advance("10m")
    assert env.get("r").status == "blocked"
    under(env, KeyCodec("right"))
    handle.send(GO, "!")
    assert handle.result() == "abab!"


def test_a_child_s_result_waits_for_the_key(env: TestEnvironment) -> None:
    handle = env.start(parent, "ab", id="p")
    env.run_until_idle()
    env.send("child", GO, "!")
    assert handle.result() == "abab!"


class Flaky(KeyCodec):
    """Its service does not answer for a while."""

    def __init__(self, error: Exception) -> None:
        super().__init__("right")
        self.error = error
        self.down = True

    def open(self, data: bytes, context: Mapping[str, str]) -> bytes:
        if self.down:
            raise self.error
        return super().open(data, context)


def test_a_key_service_that_does_not_answer_is_asked_again(env: TestEnvironment) -> None:
    handle = env.start(patient, "ab", id="r")
    env.run_until_idle()
    handle.send(GO, "!")
    flaky = Flaky(StoreUnavailable("KMS: timeout"))
    under(env, flaky)
    env.advance("20s")
    record = env.world.services.store.get("r")
    assert record is not None
    assert (record.status, record.lease_owner) == ("suspended", None)
    flaky.down = False
    assert handle.result() == "abab!"


class Refuses(KeyCodec):
    """Seals no more."""

    def seal(self, data: bytes, context: Mapping[str, str]) -> bytes:
        raise PermissionError("not allowed to use the key")


def test_a_codec_that_does_not_seal_blocks_the_run_and_refuses_the_caller(env: TestEnvironment) -> None:
    handle = env.start(patient, "ab", id="r")
    app.codec = Refuses("right")
    env.deploy(app)
    with pytest.raises(SealingFailed, match="does not seal the input: PermissionError: not allowed"):
        env.start(patient, "cd", id="s")
    with pytest.raises(LookupError):
        env.get("s")
    with pytest.raises(RunBlocked, match="does not seal"):
        handle.result()
    under(env, KeyCodec("right"))
    handle.send(GO, "!")
    assert handle.result() == "abab!"


def test_a_codec_may_come_while_runs_are_under_way(env: TestEnvironment) -> None:
    under(env, None)
    handle = env.start(patient, "ab", id="r")
    env.run_until_idle()
    handle.send(GO, "!")
    under(env, KeyCodec("right"))
    assert handle.result() == "abab!"


def test_what_was_sealed_for_one_run_does_not_open_as_another_s(env: TestEnvironment) -> None:
    first, second = env.start(patient, "ab", id="r"), env.start(patient, "cd", id="s")
    env.run_until_idle()
    store = env.world.services.memory
    stolen = next(entry for entry in store.load("r").entries if entry.location == "double")
    swapped = (stolen.value or "").rpartition(":")[0] + ":s"
    from dataclasses import replace  # noqa: PLC0415 - for this crime only

    store.put_entry("s", replace(stolen, value=swapped, epoch=store.load("s").entries[0].epoch))
    env.restart()
    second.send(GO, "!")
    with pytest.raises(RunBlocked, match="cannot be read"):
        second.result()
    first.send(GO, "!")
    assert first.result() == "abab!"


LARGE = "x" * 400_000


def lose_blobs(env: TestEnvironment) -> None:
    env.world.services.blobs.delete("r/")
    env.restart()


@pytest.mark.parametrize("codec", [None, KeyCodec("right")], ids=["plain", "sealed"])
def test_a_blob_that_is_gone_blocks_the_run(env: TestEnvironment, codec: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    under(env, codec)
    handle = env.start(patient, LARGE, id="r")
    env.run_until_idle()
    blobs: Any = env.world.services.blobs
    kept = dict(blobs._blobs)
    if codec is None:
        assert set(kept) == {key for key in kept if key.startswith("r/")} != set()
        lose_blobs(env)
        handle.send(GO, "!")
        with pytest.raises(RunBlocked, match=r'its blob "r/[0-9A-Z]+" is gone'):
            handle.result()
        blobs._blobs.update(kept)
        env.resume("r")
    else:
        handle.send(GO, "!")
    assert handle.result() == LARGE * 2 + "!"
