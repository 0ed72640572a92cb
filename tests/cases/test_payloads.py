"""Troubles with payloads and serialisation that users of such systems have had, tried on this one."""

import json
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from random import Random  # noqa: TID251 - seeded
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from durable import App, Context, LimitExceeded, NotStorable, RunError, RunFailed, Signal
from durable.model.limits import BLOB_BYTES, PAYLOAD_BYTES
from durable.ports import NoBlobs
from durable.testing import TestEnvironment
from durable.testing.services import in_memory
from tests.cases.http import caller

TEXT = Signal("text", str)
app = App("payloads")
Deploy = Callable[[App[Any]], TestEnvironment]


def make() -> Any:
    return None


@app.workflow
async def passes_on(ctx: Context, text: str) -> str:
    first = await ctx.step("make", make)
    second = await ctx.wait_for_signal(TEXT)
    return first if first == second == text else "another"


def noise(size: int) -> str:
    """Text that no compression makes much smaller."""
    return Random(size).randbytes(size // 2 + 1).hex()[: max(0, size)]


@pytest.mark.parametrize("kilobytes", [1, 250, 399, 401, 1024, 7 * 1024])
def test_PAY_01_a_value_of_any_size_passes_by_every_path(on_aws: Deploy, kilobytes: int) -> None:
    env = on_aws(app)
    text = noise(kilobytes * 1024)
    env.mock("make").returns(text)
    handle = env.start(passes_on, text)
    handle.send(TEXT, text)
    assert handle.result() == text


def test_PAY_01_beyond_the_limit_a_value_is_refused_at_the_call_with_size_and_limit() -> None:
    env, text = TestEnvironment(app), "x" * BLOB_BYTES
    told = f"{BLOB_BYTES + 2:,} bytes.*{BLOB_BYTES:,}"
    with pytest.raises(LimitExceeded, match=told):
        env.start(passes_on, text)
    handle = env.start(passes_on, "x")
    with pytest.raises(LimitExceeded, match=told):
        handle.send(TEXT, text)
    env.mock("make").returns(text)
    with pytest.raises(RunFailed, match=rf"(?s)make.*{told}"):
        handle.result()


@app.workflow
async def hundred(ctx: Context) -> int:
    total = 0
    for n in range(100):
        total += len(await ctx.step(f"make-{n}", make))
    await ctx.sleep(60)
    return total


def test_PAY_01_a_hundred_large_results_are_one_run() -> None:
    env = TestEnvironment(app)
    text = noise(200_000)
    for n in range(100):
        env.mock(f"make-{n}").returns(text)
    handle = env.start(hundred)
    env.run_until_idle()
    env.restart()
    assert handle.result() == 100 * 200_000


def sweep(character: str) -> Iterator[str]:
    each = len(json.dumps(character, ensure_ascii=False).encode()) - 2
    for size in range(PAYLOAD_BYTES - 2048, PAYLOAD_BYTES + 2048, 512):
        yield character * (size // each)


CHARACTERS = pytest.mark.parametrize(
    "character", ["a", "😀", '"', "\x01", "é"], ids=["ascii", "emoji", "quote", "control", "latin"]
)


@CHARACTERS
def test_PAY_02_every_size_around_what_an_item_holds_passes(on_aws: Deploy, character: str) -> None:
    env = on_aws(app)
    for text in sweep(character):
        env.mock("make").returns(text)
        handle = env.start(passes_on, text)
        handle.send(TEXT, text)
        assert handle.result() == text


@CHARACTERS
def test_PAY_02_without_a_bucket_a_size_passes_or_is_clearly_refused(character: str) -> None:
    env = TestEnvironment(app, services=replace(in_memory(), blobs=NoBlobs()))
    outcomes: list[str] = []
    for text in sweep(character):
        env.mock("make").returns(text)
        try:
            handle = env.start(passes_on, text)
            handle.send(TEXT, text)
        except LimitExceeded:
            outcomes.append("refused")
        else:
            assert handle.result() == text
            outcomes.append("passed")
    assert outcomes == sorted(outcomes), "first those that pass, then those that are refused"
    assert set(outcomes) == {"passed", "refused"}


def test_PAY_02_a_large_output_and_a_large_error_end_the_run_all_the_same() -> None:
    sizes = App("sizes")

    @sizes.workflow
    async def returns(ctx: Context, size: int) -> str:
        return "x" * size

    @sizes.workflow
    async def raises(ctx: Context, size: int) -> str:
        raise ValueError("x" * size)

    env = TestEnvironment(sizes)
    assert len(env.start(returns, PAYLOAD_BYTES - 2).result()) == PAYLOAD_BYTES - 2
    with pytest.raises(RunError, match="cannot be stored"):
        env.start(returns, BLOB_BYTES).result()
    with pytest.raises(RunFailed, match="xxxx"):
        env.start(raises, 3 * PAYLOAD_BYTES).result()


def kilobyte(n: int) -> str:
    return f"{n:04}" + "x" * 1020


async def one(ctx: Context, n: int) -> str:
    return await ctx.step(kilobyte, n)


@app.workflow
async def mapped(ctx: Context) -> int:
    return sum(map(len, await ctx.map("each", list(range(2000)), one, concurrency=64)))


def test_PAY_03_results_of_a_map_are_stored_item_by_item() -> None:
    env = TestEnvironment(app)
    assert env.start(mapped, id="r").result() == 2000 * 1024
    assert max(len(entry.value or "") for entry in env.history("r")) < 2000


class CustomError(Exception):
    def __init__(self, *, code: str) -> None:
        super().__init__(f"code {code}")
        self.code = code


def fails() -> None:
    raise CustomError(code="E7")


@app.workflow
async def child(ctx: Context) -> None:
    await ctx.step(fails)


@app.workflow
async def parent(ctx: Context) -> str:
    try:
        await ctx.child(child)
    except CustomError as error:
        return error.code
    return "no error"


def test_PAY_04_an_exception_that_cannot_be_rebuilt_is_read_by_everyone() -> None:
    env = TestEnvironment(app)
    with pytest.raises(RunFailed, match="code E7") as failed:
        env.start(child, id="r").result()
    error = failed.value.error
    assert env.get("r").error is not None
    assert error is not None
    assert error.cause is not None
    assert (error.cause.type, error.cause.message, error.cause.data) == ("CustomError", "code E7", {"code": "E7"})
    assert env.list(child).runs[0].id == "r"
    assert env.start(parent).result() == "E7"


class Unreducible:
    def __reduce__(self) -> Any:
        raise RuntimeError("no")


def circular() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@app.workflow
async def makes(ctx: Context) -> Any:
    await ctx.step("make", make)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (threading.Lock, "lock"),
        (lambda: (n for n in ()), "generator"),
        (Unreducible, "Unreducible"),
        (lambda: {(1, 2): "x"}, "keys that are no texts"),
        (circular, "Recursion"),
        (lambda: {"path": [{"to": {"field": threading.Lock()}}]}, r"path\[0\]\.to\.field"),
    ],
    ids=["lock", "generator", "reduce", "keys", "circular", "deep"],
)
def test_PAY_05_what_cannot_be_stored_fails_its_step_by_name_and_the_run_ends(
    value: Callable[[], Any], where: str
) -> None:
    env = TestEnvironment(app)
    mock = env.mock("make").runs(value)
    with pytest.raises(RunFailed, match=f"make.*NotStorable.*{where}"):
        env.start(makes, id="r").result()
    assert len(mock.calls) == 1
    assert env.get("r").ended


@dataclass(frozen=True)
class Point:
    x: int
    y: tuple[float, str]


class Everything(BaseModel):
    when: datetime = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    price: Decimal = Decimal("30.40")
    raw: bytes = b"abc"
    id: UUID = UUID(int=5)
    pair: tuple[int, str] = (1, "a")
    tags: frozenset[str] = frozenset({"x", "y"})
    point: Point = Point(1, (0.1, "b"))
    empty: set[int] = set()


EVERYTHING = Everything()
GIVEN = Signal("given", Everything)


def same(value: Everything) -> Everything:
    assert value == EVERYTHING
    return value


@app.workflow
async def through_a_child(ctx: Context, value: Everything) -> Everything:
    return value


@app.workflow
async def through_everything(ctx: Context, value: Everything) -> Everything:
    values = [value, await ctx.step(same, value), await ctx.wait_for_signal(GIVEN)]
    values.append(await ctx.child(through_a_child, value))
    for found in values:
        assert found == EVERYTHING
        assert type(found.point) is Point
        assert type(found.pair) is tuple
        assert type(found.price) is Decimal
    await ctx.sleep(60)
    return value


def test_PAY_06_types_survive_input_step_message_child_and_replay() -> None:
    env = TestEnvironment(app)
    handle = env.start(through_everything, EVERYTHING)
    handle.send(GIVEN, EVERYTHING)
    env.run_until_idle()
    env.restart()
    assert handle.result() == EVERYTHING


def table() -> dict[int | str, Any]:
    return {1: "a", "t": (1, 2)}


def typed() -> tuple[dict[int, str], tuple[int, int]]:
    return {1: "a"}, (1, 2)


@app.workflow
async def branches(ctx: Context) -> list[bool]:
    found, pair = await ctx.step(typed)
    taken = [1 in found, isinstance(pair, tuple)]
    await ctx.sleep(60)
    return [*taken, 1 in found, isinstance(pair, tuple)]


def test_PAY_07_both_wakes_take_the_same_branch() -> None:
    env = TestEnvironment(app)
    handle = env.start(branches)
    env.run_until_idle()
    env.restart()
    assert handle.result() == [True, True, True, True]
    env.mock("make").runs(table)
    with pytest.raises(RunFailed, match="NotStorable"):  # without an annotation that keeps them apart it is refused
        env.start(makes).result()


@app.workflow
async def city(ctx: Context, where: dict[str, str]) -> str:
    return where["city"]


def test_PAY_08_what_is_stored_is_json_of_one_level() -> None:
    env = TestEnvironment(app)
    env.start(city, {"city": "Quito"}, id="r").result()
    assert env.get("r").input == '{"city":"Quito"}'
    answer = caller(env)("GET", "/runs/r")
    assert json.loads(answer["body"])["input"] == {"city": "Quito"}


NUMBERS = [30.40, 0.1 + 0.2, 1e300, 2**80, 10**40, -0.0, 0, -1, 1e-300]
MANY = Signal("numbers", list[int | float])


def numbers() -> list[int | float]:
    return NUMBERS


@app.workflow
async def counts(ctx: Context, given: list[int | float]) -> list[int | float]:
    ctx.set_attributes(price=30.40, sum=0.1 + 0.2)
    for found in (given, await ctx.step(numbers), await ctx.wait_for_signal(MANY)):
        assert [(n, type(n), math.copysign(1, n)) for n in found] == [
            (n, type(n), math.copysign(1, n)) for n in NUMBERS
        ]
    return given


@app.workflow
async def not_finite(ctx: Context, n: float) -> float:
    return n


def test_PAY_09_numbers_keep_value_and_type_and_attributes_are_exact(on_aws: Deploy) -> None:
    env = on_aws(app)
    handle = env.start(counts, NUMBERS)
    handle.send(MANY, NUMBERS)
    assert handle.result() == NUMBERS
    assert [row.id for row in env.list(counts, where=f"price == 30.4 and sum == {0.1 + 0.2!r}").runs] == [handle.id]


@app.workflow
async def plain(ctx: Context, n: list[Any]) -> list[Any]:
    return n


@pytest.mark.parametrize("n", [math.nan, math.inf, -math.inf])
def test_PAY_09_what_is_not_finite_needs_an_annotation(n: float) -> None:
    env = TestEnvironment(app)
    assert repr(env.start(not_finite, n).result()) == repr(n)
    with pytest.raises(NotStorable, match="a float"):
        env.start(plain, [n])


ODD = ["\u0000", "a\u0000b", "", [], None, {"": 1}, {"size": 1, "status": "x", "#": 2, ":v": 3}, {}, [None], "\x7f￿"]


@app.workflow
async def odd(ctx: Context, value: Any) -> Any:
    made = await ctx.step("make", make)
    heard = await ctx.wait_for_signal("odd", Any)
    await ctx.sleep(60)
    assert made == heard == value
    return value


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_PAY_10_odd_values_come_back_equal(on_aws: Deploy, value: Any) -> None:
    env = on_aws(app)
    env.mock("make").returns(value)
    handle = env.start(odd, value)
    handle.send("odd", value)
    env.run_until_idle()
    env.restart()
    assert handle.result() == value


def test_PAY_10_half_a_character_is_refused_everywhere() -> None:
    env = TestEnvironment(app)
    half = "\ud83d"
    with pytest.raises(NotStorable, match="UTF-8"):
        env.start(odd, half)
    handle = env.start(odd, "x")
    with pytest.raises(NotStorable, match="UTF-8"):
        handle.send("odd", half)
    env.mock("make").returns(half)
    with pytest.raises(RunFailed, match="make"):
        handle.result()


def test_PAY_11_a_history_of_many_large_entries_is_read_page_by_page(on_aws: Deploy) -> None:
    env = on_aws(app)
    for n in range(100):
        env.mock(f"make-{n}").returns(noise(100_000))
    handle = env.start(hundred, id="r")
    env.run_until_idle()
    env.restart()
    assert handle.result() == 100 * 100_000
    call, seen, cursor = caller(env), 0, ""
    while cursor is not None:
        answer = call("GET", f"/runs/r/history?cursor={cursor}")
        assert answer["statusCode"] == 200
        assert len(json.dumps(answer)) < 6 * 2**20, "more than Lambda can answer"
        page = json.loads(answer["body"])
        seen, cursor = seen + len(page["entries"]), page["cursor"]
    assert seen == 101


def test_PAY_11_what_is_too_large_to_be_shown_says_so_with_its_size(on_aws: Deploy) -> None:
    env = on_aws(app)
    text = noise(7 * 2**20)
    env.mock("make").returns(text)
    handle = env.start(passes_on, text, id="r")
    handle.send(TEXT, text)
    assert handle.result() == text
    for path in ("/runs/r", "/runs/r/history", "/runs/r/export"):
        answer = caller(env)("GET", path)
        assert len(json.dumps(answer)) < 6 * 2**20
        assert "7,340,034 bytes" in answer["body"] or answer["statusCode"] == 413
