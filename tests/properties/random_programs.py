"""Random workflow programs over asyncio and the context: trees of nodes, and the interpreter that runs one."""

# ruff: noqa: BLE001  programs that catch everything are part of what is tested

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from durable.errors import JoinError, MapError, RaceError, WaitTimeout
from durable.journal import current_scope
from durable.values import Break, Continue
from tests.properties.virtual_engine import Ctx


def increment(x: int) -> int:
    return x + 1


def refuse_thirds(x: int) -> int:
    if x % 3 == 0:
        raise ValueError(f"no {x}")
    return x


def pair(x: int) -> list[int]:
    return [x, x]


def count_up(n: int) -> Break[int] | Continue[int]:
    return Break(n) if n % 4 == 0 else Continue(n + 1)


FUNCTIONS: tuple[Callable[[int], Any], ...] = (increment, refuse_thirds, pair)

LEAVES = ["step"] * 6 + [
    "sleep",
    "next",
    "timer",
    "yield",
    "event_wait",
    "event_set",
    "now",
    "version",
    "wait_until",
    "broken",
]
TREES = ["sequence"] * 4 + [
    "gather", "task_group", "timeout", "wait_for", "race", "join", "map", "try_map", "loop", "retrying", "try_block", "try", "finally", "bare_except",
    "spawn", "shield", "lock", "semaphore", "first_done", "as_completed", "generator", "wait_all", "cancel_and_wait",
]  # fmt: skip


@dataclass
class Node:
    kind: str
    number: int = 0
    flag: bool = False
    count: int = 0
    delay: float = 0
    name: str = ""
    children: list[Node] = field(default_factory=list)


def program(seed: int) -> Node:
    rng = random.Random(seed)
    numbers = iter(range(1, 1_000_000))
    return Node("sequence", children=[_node(rng, 3 + seed % 3, numbers), _node(rng, 2, numbers)])


def _node(rng: random.Random, depth: int, numbers: Any) -> Node:
    kind = rng.choice(LEAVES if depth <= 0 or rng.random() < 0.25 else TREES)
    width = {
        "sequence": 4,
        "gather": 4,
        "task_group": 4,
        "first_done": 4,
        "as_completed": 4,
        "wait_all": 4,
        "race": 4,
        "join": 4,
    }
    pairs = {"try", "bare_except", "finally", "generator", "spawn", "cancel_and_wait"}
    single = {"timeout", "wait_for", "shield", "lock", "semaphore", "map", "try_map", "loop", "retrying", "try_block"}
    amount = rng.randint(1, width[kind]) if kind in width else 2 if kind in pairs else 1 if kind in single else 0
    return Node(
        kind,
        number=rng.randrange(20),
        flag=rng.random() < 0.5,
        count=rng.randint(1, 5),
        delay=rng.choice([0, 1, 2, 2, 4]),
        name=f"n{next(numbers)}" if rng.random() < 0.2 or kind != "step" else "",
        children=[_node(rng, depth - 1, numbers) for _ in range(amount)],
    )


class Shared:
    """What the nodes of one program share."""

    def __init__(self) -> None:
        self.locks = [asyncio.Lock(), asyncio.Lock()]
        self.semaphores = [asyncio.Semaphore(2), asyncio.Semaphore(1)]
        self.events = [asyncio.Event(), asyncio.Event()]


async def run_program(ctx: Ctx, root: Node) -> Any:
    return await Interpreter(ctx, Shared()).run(root)


class Interpreter:
    def __init__(self, ctx: Ctx, shared: Shared) -> None:
        self.ctx = ctx
        self.shared = shared

    async def run(self, node: Node) -> Any:
        self.ctx.note("begins", node.kind)
        value = await getattr(self, f"_{node.kind}")(node)
        self.ctx.note("ends", repr(value))
        return value

    def unused(self, name: str) -> str:
        return f"{name}_{len(current_scope.get().used)}"

    # Leaves

    async def _step(self, node: Node) -> Any:
        fn = FUNCTIONS[node.number % 3]
        if node.name and node.name not in current_scope.get().used:
            return await self.ctx.step(node.name, fn, node.number)
        return await self.ctx.step(fn, node.number)

    async def _sleep(self, node: Node) -> Any:
        return await self.ctx.sleep(node.delay)

    async def _timer(self, node: Node) -> Any:
        return await asyncio.sleep(node.delay)

    async def _yield(self, _: Node) -> Any:
        return await asyncio.sleep(0)

    async def _next(self, node: Node) -> Any:
        try:
            return await self.ctx.next("ab"[node.number % 2], timeout=node.delay * 2)
        except WaitTimeout:
            return "nothing came"

    async def _now(self, _: Node) -> Any:
        return round(self.ctx.now(), 6)

    async def _version(self, node: Node) -> Any:
        version = self.ctx.get_version(self.unused(node.name), 2)
        return await self.ctx.step(increment, version) if version == 2 else await self.ctx.step(pair, 1)

    async def _broken(self, node: Node) -> Any:
        """Fails at once, without waiting for anything; not where that would end the whole program."""
        if current_scope.get().prefix:
            raise KeyError(node.number)

    async def _wait_until(self, node: Node) -> Any:
        timeout = None if node.flag else node.delay
        try:
            return await self.ctx.wait_until(self.unused(node.name), count_up, node.number, timeout)
        except WaitTimeout:
            return "not in time"

    async def _event_set(self, node: Node) -> Any:
        self.shared.events[node.number % 2].set()

    async def _event_wait(self, node: Node) -> Any:
        try:
            async with asyncio.timeout(3):
                await self.shared.events[node.number % 2].wait()
                return "event"
        except TimeoutError:
            return "no event"

    # Trees

    async def _sequence(self, node: Node) -> Any:
        return [await self.run(child) for child in node.children]

    async def _lock(self, node: Node) -> Any:
        return await self._inside(self.shared.locks[node.number % 2], node)

    async def _semaphore(self, node: Node) -> Any:
        return await self._inside(self.shared.semaphores[node.number % 2], node)

    async def _inside(self, guard: Any, node: Node) -> Any:
        try:
            async with asyncio.timeout(20), guard:
                return await self.run(node.children[0])
        except TimeoutError:
            return "no lock"

    async def _gather(self, node: Node) -> Any:
        found = await asyncio.gather(*map(self.run, node.children), return_exceptions=node.flag)
        return [repr(value) for value in found]

    async def _task_group(self, node: Node) -> Any:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.run(child)) for child in node.children]
            return [task.result() for task in tasks]
        except* Exception as errors:
            failed = len(errors.exceptions)
        return failed

    async def _timeout(self, node: Node) -> Any:
        try:
            async with asyncio.timeout(node.delay):
                return await self.run(node.children[0])
        except TimeoutError:
            return "timeout"

    async def _wait_for(self, node: Node) -> Any:
        try:
            return await asyncio.wait_for(self.run(node.children[0]), node.delay)
        except TimeoutError:
            return "wait_for"

    async def _shield(self, node: Node) -> Any:
        task = asyncio.create_task(self.run(node.children[0]))
        try:
            return await asyncio.wait_for(asyncio.shield(task), node.delay)
        except TimeoutError:
            pass
        return await task

    def _branches(self, node: Node) -> dict[str, Callable[[Ctx], Awaitable[Any]]]:
        return {f"b{place}": (lambda _, child=child: self.run(child)) for place, child in enumerate(node.children)}

    async def _join(self, node: Node) -> Any:
        try:
            return await self.ctx.join(self.unused(node.name), self._branches(node))
        except JoinError as error:
            return sorted(error.failures)

    async def _race(self, node: Node) -> Any:
        try:
            winner = await self.ctx.race(self.unused(node.name), self._branches(node))
        except RaceError as error:
            return sorted(error.failures)
        return winner.key, winner.value

    async def _map(self, node: Node) -> Any:
        async def one(_: Ctx, __: int) -> Any:
            return await self.run(node.children[0])

        try:
            return await self.ctx.map(self.unused(node.name), range(node.count), one, concurrency=1 + node.number % 3)
        except Exception as error:
            return repr(error)

    async def _try_map(self, node: Node) -> Any:
        async def one(_: Ctx, __: int) -> Any:
            return await self.run(node.children[0])

        bounds = {"concurrency": 1 + node.number % 3}
        bounds |= {"enough": 1 + node.count // 2} if node.flag else {"tolerate": node.number % 2}
        try:
            result = await self.ctx.try_map(self.unused(node.name), range(node.count), one, **bounds)
        except MapError as error:
            result = error.result
        return [repr(outcome) for outcome in result.outcomes]

    async def _try_block(self, node: Node) -> Any:
        async def body(_: Ctx) -> Any:
            return await self.run(node.children[0])

        return repr(await self.ctx.try_block(self.unused(node.name), body))

    async def _retrying(self, node: Node) -> Any:
        async def body(ctx: Ctx) -> str:
            found = await Interpreter(ctx, Shared()).run(node.children[0])
            luck = await ctx.step(refuse_thirds, round(ctx.now()))
            return repr((found, luck))

        try:
            return await self.ctx.retrying(self.unused(node.name), body, node.number % 4)
        except Exception as error:
            return repr(error)

    async def _loop(self, node: Node) -> Any:
        async def body(ctx: Ctx, state: list[str]) -> Break[list[str]] | Continue[list[str]]:
            try:
                found = repr(await Interpreter(ctx, Shared()).run(node.children[0]))
            except Exception as error:
                found = repr(error)
            state = [*state, found]
            return Break(state) if len(state) >= node.count else Continue(state)

        return await self.ctx.loop(self.unused(node.name), body, [], history=1 + node.number % 3)

    async def _try(self, node: Node) -> Any:
        try:
            return await self.run(node.children[0])
        except Exception:
            return await self.run(node.children[1])

    async def _bare_except(self, node: Node) -> Any:
        try:
            return await self.run(node.children[0])
        except:
            await self.run(node.children[1])
            raise

    async def _finally(self, node: Node) -> Any:
        try:
            return await self.run(node.children[0])
        finally:
            await self.run(node.children[1])

    async def _spawn(self, node: Node) -> Any:
        task = asyncio.create_task(self.run(node.children[0]))
        value = await self.run(node.children[1])
        if node.flag:
            task.cancel()
        return value, repr((await asyncio.gather(task, return_exceptions=True))[0])

    async def _cancel_and_wait(self, node: Node) -> Any:
        task = asyncio.create_task(self.run(node.children[0]))
        value = await self.run(node.children[1])
        task.cancel()
        if node.flag:
            await asyncio.wait([task])
        return value

    async def _first_done(self, node: Node) -> Any:
        tasks = [asyncio.create_task(self.run(child)) for child in node.children]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        found = ["cancelled" if task.cancelled() else repr(task.exception() or task.result()) for task in done]
        if pending:
            await asyncio.wait(pending)
        return found

    async def _wait_all(self, node: Node) -> Any:
        done, _ = await asyncio.wait([asyncio.create_task(self.run(child)) for child in node.children])
        return [(task.cancelled() or repr(task.exception()), await self.ctx.step(increment, 1)) for task in done]

    async def _as_completed(self, node: Node) -> Any:
        found: list[str] = []
        for next_one in asyncio.as_completed([asyncio.create_task(self.run(child)) for child in node.children]):
            try:
                found.append(repr(await next_one))
            except Exception as error:
                found.append(repr(error))
        return found

    async def _generator(self, node: Node) -> Any:
        async def generate() -> AsyncIterator[Any]:
            try:
                yield await self.run(node.children[0])
                yield await self.run(node.children[1])
            finally:
                self.shared.events[0].set()

        return [value async for value in generate()]
