"""Names, ids and the other small things: at their limit they work, beyond it they are refused, and nothing is stored."""

from collections.abc import Callable
from typing import Any

import pytest

from durable import (
    App,
    Context,
    InvalidInput,
    InvalidName,
    LimitExceeded,
    RunBlocked,
    RunFailed,
    Signal,
    StateKey,
    Step,
)
from durable.model.limits import HEADER_BYTES, LOCATION_BYTES, NAME_BYTES, RUN_ID_BYTES, TAG_BYTES, TAGS
from durable.testing import TestEnvironment

GO = Signal("go", int)
app = App("names")


def one() -> int:
    return 1


@app.workflow
async def named(ctx: Context, name: str) -> int:
    return await ctx.step(name, one)


@app.workflow
async def nested(ctx: Context, names: list[str]) -> int:
    if not names:
        return await ctx.step(one)
    block: Callable[[Context], Any] = lambda ctx: nested.fn(ctx, names[1:])  # noqa: E731 - for one call
    outcome: Any = await ctx.try_block(names[0], block)
    return outcome.value


@app.workflow
async def tagged(ctx: Context, tags: list[str]) -> int:
    ctx.add_tags(*tags)
    await ctx.sleep("1s")
    return 1


@app.workflow
async def attributed(ctx: Context, attributes: dict[str, str]) -> int:
    ctx.set_attributes(**attributes)
    await ctx.sleep("1s")
    return 1


@app.workflow
async def keyed(ctx: Context, key: str) -> int:
    ctx.set_state(StateKey(key, int), 1)
    ctx.stream(key).append(1)
    await ctx.sleep("1s")
    return 1


@app.workflow
async def waits(ctx: Context) -> int:
    return await ctx.wait_for_signal(GO)


@app.workflow
async def policy(ctx: Context, name: str) -> int:
    return await ctx.step(Step(name), one)


REFUSALS = (InvalidName, InvalidInput, LimitExceeded)


def of_bytes(character: str, size: int) -> str:
    """A text of exactly so many bytes."""
    width = len(character.encode())
    return character * (size // width) + "x" * (size % width)


@pytest.mark.parametrize("character", ["x", "é", "😀", "/", "?", "%", "#", " ", '"'])
@pytest.mark.parametrize("workflow", [named, policy, keyed])
def test_names_of_operations_have_256_bytes(workflow: Any, character: str) -> None:
    with TestEnvironment(app) as env:
        assert env.start(workflow, of_bytes(character, NAME_BYTES)).result() == 1
        with pytest.raises((RunFailed, RunBlocked), match="1 to 256 bytes"):
            env.start(workflow, of_bytes(character, NAME_BYTES) + "x").result()


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00b", "\u202e", "\u2028", "\x7f"])
@pytest.mark.parametrize("workflow", [named, policy, keyed])
def test_names_of_operations_are_printable(workflow: Any, name: str) -> None:
    with TestEnvironment(app) as env, pytest.raises((RunFailed, RunBlocked), match="is not allowed"):
        env.start(workflow, name).result()


@pytest.mark.parametrize("character", ["x", "é", "😀", "?", "%"])
def test_locations_have_850_bytes_with_all_that_is_escaped(character: str) -> None:
    refused, text = 0, ""
    with TestEnvironment(app) as env:
        for length in range(20, 260, 20):
            handle = env.start(nested, [of_bytes(character, length)] * 4)
            try:
                assert handle.result() == 1
            except (RunFailed, RunBlocked) as refusal:
                refused += 1
                text = str(refusal)
        assert 0 < refused < 12
        assert f"the limit is {LOCATION_BYTES} bytes" in text or "850" in text


@pytest.mark.parametrize(
    ("tags", "fits"),
    [
        ([str(n) for n in range(TAGS)], True),
        ([str(n) for n in range(TAGS + 1)], False),
        (["x" * TAG_BYTES], True),
        (["x" * (TAG_BYTES + 1)], False),
        (["é" * (TAG_BYTES // 2)], True),
        (["é" * (TAG_BYTES // 2) + "x"], False),
        (["a", "x" * (TAG_BYTES - 1)], True),
        (["a", "x" * TAG_BYTES], False),
        ([""], False),
        (["\x00"], False),
        (["\ud800"], False),
    ],
)
def test_tags_have_256_bytes_altogether(tags: list[str], fits: bool) -> None:
    with TestEnvironment(app) as env:
        if fits:
            assert env.start(waits, id="r", tags=tags).id == "r"
            assert env.start(tagged, tags).result() == 1
            return
        with pytest.raises(REFUSALS):
            env.start(waits, id="r", tags=tags)
        assert not env.world.services.memory.runs
        if tags != ["\ud800"]:
            with pytest.raises((RunFailed, RunBlocked)):
                env.start(tagged, tags).result()


@pytest.mark.parametrize(
    ("attributes", "fits"),
    [
        ({f"a{n}": "x" for n in range(TAGS)}, True),
        ({f"a{n}": "x" for n in range(TAGS + 1)}, False),
        ({"a": "x" * (TAG_BYTES - 1)}, True),
        ({"a": "x" * TAG_BYTES}, False),
        ({"a": "😀" * (TAG_BYTES // 4)}, False),
        ({"a": "\x00"}, True),
    ],
)
def test_attributes_have_256_bytes_altogether(attributes: dict[str, str], fits: bool) -> None:
    with TestEnvironment(app) as env:
        handle = env.start(attributed, attributes)
        if fits:
            assert handle.result() == 1
            assert dict(env.get(handle.id).attributes) == attributes
            return
        with pytest.raises((RunFailed, RunBlocked), match="the limit is"):
            handle.result()


@pytest.mark.parametrize(
    ("headers", "fits"),
    [
        ({"a": "x" * (HEADER_BYTES - 1)}, True),
        ({"a": "x" * HEADER_BYTES}, False),
        ({str(n): "x" for n in range(300)}, False),
        ({"": "x"}, False),
        ({"a": "\x00"}, False),
        ({"a": "\ud800"}, False),
    ],
)
def test_headers_have_512_bytes_altogether(headers: dict[str, str], fits: bool) -> None:
    with TestEnvironment(app) as env:
        if fits:
            env.start(waits, id="r", headers=headers)
            assert dict(env.get("r").headers) == headers
            return
        with pytest.raises(REFUSALS):
            env.start(waits, id="r", headers=headers)
        assert not env.world.services.memory.runs


BAD_RUN_IDS = [
    "",
    "x" * (RUN_ID_BYTES + 1),
    "a/b",
    "a b",
    "a#b",
    "é",
    "😀",
    "a\x00",
    "\ud800",
    "-a",
    "a~2",
    "entity:a",
    "..",
    "a\n",
]


@pytest.mark.parametrize("run_id", BAD_RUN_IDS)
def test_run_ids_are_refused_wherever_they_are_given(run_id: str) -> None:
    with TestEnvironment(app) as env:
        with pytest.raises(InvalidName):
            env.start(waits, id=run_id)
        if run_id in {"a~2", "entity:a"}:
            return  # nobody may choose them, and they may exist
        for use in (env.get, env.cancel, env.history, env.export, env.resume, env.retry):
            with pytest.raises(InvalidName):
                use(run_id)
        with pytest.raises(InvalidName):
            env.send(run_id, GO, 1)
        assert not env.world.services.memory.runs
        assert not env.world.services.runs.pending


def test_the_longest_run_id_has_children_and_successors() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(waits, id="x" * RUN_ID_BYTES)
        handle.send(GO, 1)
        assert handle.result() == 1


@pytest.mark.parametrize("message_id", ["", "a b", "é", "\x00", "x" * (NAME_BYTES + 1), "a\n"])
def test_message_ids_are_visible_ascii(message_id: str) -> None:
    with TestEnvironment(app) as env:
        env.start(waits, id="r")
        env.run_until_idle()
        with pytest.raises(InvalidName):
            env.send("r", GO, 1, id=message_id)
        env.send("r", GO, 1, id="~" * NAME_BYTES)
        assert env.result("r") == 1


@pytest.mark.parametrize("name", ["", "\ud800", "a\nb", "x" * (NAME_BYTES + 1), "é" * 200])
def test_names_of_messages_are_refused_before_anything_is_sent(name: str) -> None:
    with TestEnvironment(app) as env:
        env.start(waits, id="r")
        env.run_until_idle()
        with pytest.raises(InvalidName):
            env.send("r", name, 1)
        with pytest.raises(InvalidName):
            env.publish_event(name, 1)
        assert not env.world.services.runs.pending


@pytest.mark.parametrize("key", ["", "x" * (NAME_BYTES + 1), "\ud800", "é" * 200])
def test_idempotency_keys_are_refused(key: str) -> None:
    with TestEnvironment(app) as env:
        with pytest.raises(REFUSALS):
            env.start(waits, idempotency_key=key)
        assert not env.world.services.memory.runs
