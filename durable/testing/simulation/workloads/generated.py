"""Programs that a seed makes up; what each must return is known without running it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - handed in, seeded
from typing import TYPE_CHECKING, Any, Final, cast

from durable import codec
from durable.context import Branch, Context
from durable.errors import NonRetryableError
from durable.options import Call
from durable.step_context import step_context
from durable.testing.simulation.violation import Violation
from durable.testing.simulation.workloads.effects import app, effects, quick
from durable.testing.simulation.workloads.endings import check_completed
from durable.testing.simulation.workloads.remote import SOON
from durable.testing.simulation.workloads.workload import Ending, Workload
from durable.values import Break, Continue, Ok

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAVES: Final = ("step", "step", "sleep", "flaky", "call")
TREES: Final = ("row", "gather", "join", "map", "loop", "try", "race", "child")
LONG: Final = 100_000.0
"""Seconds that nothing takes, whatever goes wrong."""


@dataclass(frozen=True, slots=True)
class Node:
    """A program, or a part of one. Its number is its own."""

    kind: str
    number: int
    parts: list[Node] = field(default_factory=list["Node"])


def program(random: Random) -> Node:
    """A program of a few operations."""
    numbers = iter(range(1, 1_000))
    return Node("row", 0, [_part(random, 2, numbers) for _ in range(random.randint(1, 3))])


def _part(random: Random, depth: int, numbers: Iterator[int]) -> Node:
    kind = random.choice(LEAVES if depth == 0 else (*LEAVES, *TREES))
    if kind in LEAVES:
        return Node(kind, next(numbers))
    count = random.randint(1, 3) if kind in {"row", "gather", "join"} else 1
    return Node(kind, next(numbers), [_part(random, depth - 1, numbers) for _ in range(count)])


def value_of(node: Node) -> Any:
    """What a program returns, however it gets there."""
    parts = [value_of(part) for part in node.parts]
    if not parts:
        return 0 if node.kind == "sleep" else node.number
    if node.kind in {"row", "gather", "join"}:
        return parts
    found = parts[0]
    return {"map": [found] * 2, "loop": [found] * 3, "try": [found, "failed"]}.get(node.kind, found)


def give(number: int) -> int:
    """A step."""
    effects.happen()
    return number


def give_at_second_attempt(number: int) -> int:
    """A step that fails first."""
    effects.happen()
    if step_context().attempt == 1:
        raise ConnectionError
    return number


def refuse() -> int:
    """A step that fails for good."""
    raise NonRetryableError("no")


@app.remote_step(queue="plain", retries=50)
def give_from_afar(number: int) -> int:
    """A remote step."""
    with effects.body():
        return number


@app.workflow
async def generated(ctx: Context, node: Node) -> Any:
    """Runs a program."""
    return await run(ctx, node)


async def run(ctx: Context, node: Node) -> Any:
    """Runs a part of one."""
    name = f"{node.kind}-{node.number}"
    if node.kind in LEAVES:
        return await _run_leaf(ctx, node, name)
    match node.kind:
        case "row":
            return [await run(ctx, part) for part in node.parts]
        case "gather":
            return [*await asyncio.gather(*(run(ctx, part) for part in node.parts))]
        case "join":
            return [*await ctx.join(name, *(Branch(f"b{place}", run, part) for place, part in enumerate(node.parts)))]
        case _:
            return await _run_block(ctx, node, name)


async def _run_leaf(ctx: Context, node: Node, name: str) -> int:
    match node.kind:
        case "step":
            return await ctx.step(quick(name), give, node.number)
        case "flaky":
            return await ctx.step(quick(name), give_at_second_attempt, node.number)
        case "call":
            policy = Call(name, backoff=SOON, timeout=40, pickup_timeout=60)
            return await ctx.call(policy, give_from_afar, node.number)
        case _:
            await ctx.sleep(node.number % 9, name=name)
            return 0


async def _run_block(ctx: Context, node: Node, name: str) -> Any:
    part = node.parts[0]

    async def item(ctx: Context, number: int) -> Any:
        del number
        return await run(ctx, part)

    async def go_round(ctx: Context, so_far: list[Any]) -> Continue[list[Any]] | Break[list[Any]]:
        so_far = [*so_far, await run(ctx, part)]
        return Break(so_far) if len(so_far) == 3 else Continue(so_far)

    async def fails(ctx: Context) -> int:
        return await ctx.step(quick("refuse"), refuse)

    async def nap(ctx: Context) -> int:
        await ctx.sleep(LONG)
        return 0

    match node.kind:
        case "map":
            return await ctx.map(name, [1, 2], item, concurrency=2)
        case "loop":
            return await ctx.loop(name, go_round, state=cast("list[Any]", []), history=2)
        case "try":
            found = await run(ctx, part)
            outcome = await ctx.try_block(name, fails)
            return [found, "did not" if isinstance(outcome, Ok) else "failed"]
        case "race":
            winner = await ctx.race(name, Branch("part", run, part), Branch("nap", nap))
            return winner.value
        case "child":
            return await ctx.child(generated, part, id=f"{ctx.run.id}.{name}")
        case _:
            raise ValueError(node.kind)


def check(ending: Ending) -> None:
    """The program has returned what it must."""
    check_completed(ending)
    watch = ending.watch
    run = watch.run
    text = watch.store.get_payload(run.id, "input") if run.input is None else run.input
    node = codec.decode(text, Node)
    if watch.output != value_of(node):
        raise Violation(f"generated: {watch.output} was returned, and {value_of(node)} is right: {node}")


def workload_of(node: Node) -> Workload:
    """Seeds of one program."""
    return Workload(name="generated", workflow=generated, check=check, input=lambda _: node, pace=0.5, many=True)


GENERATED = Workload(name="generated", workflow=generated, check=check, input=program, pace=0.5, many=True)
