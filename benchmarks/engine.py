"""Measures the engine on the in-memory ports: CPU per step forward and on replay, turns a second, fan-in, import times.

Prints one JSON line a measurement. Numbers of one machine compare only with others of the same run.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import subprocess
import sys
import time
from typing import Any

from durable import App, Context
from durable.adapters.memory import MemoryRunQueue, MemoryStore, MemoryTimers, VirtualClock
from durable.client import Client
from durable.engine.lease import Loaded
from durable.engine.opening import open_execution
from durable.engine.orchestrator import Delivery, Orchestrator
from durable.model.history import unpacked
from durable.ports import Ports
from durable.testing import TestEnvironment

app = App("benchmark")
TARGETS = {"forward_us": 50.0, "replay_us": 5.0, "import_ratio": 1.15}


def work(n: int) -> int:
    """The cheapest step there is."""
    return n


@app.workflow
async def steps(ctx: Context, n: int) -> int:
    """So many steps, one after another."""
    total = 0
    for i in range(n):
        total += await ctx.step(work, i)
    return total


@app.workflow
async def sleeps(ctx: Context, n: int) -> None:
    """So many turns that only sleep."""
    for _ in range(n):
        await ctx.sleep(60)


@app.remote_step
def remote_work(n: int) -> int:
    """The cheapest remote step there is."""
    return n


async def one_call(ctx: Context, n: int) -> int:
    """An item of a map."""
    return await ctx.call(remote_work, n)


@app.workflow
async def calls(ctx: Context, n: int) -> int:
    """So many remote steps, ten at a time."""
    return sum(await ctx.map("calls", range(n), one_call))


@app.workflow
async def child(ctx: Context, n: int) -> int:  # noqa: ARG001 - as every workflow
    """The cheapest run there is."""
    return n


@app.workflow
async def children(ctx: Context, n: int) -> int:
    """So many children side by side."""
    return sum(await asyncio.gather(*(ctx.child(child, i) for i in range(n))))


class World:
    """The in-memory ports and one orchestrator."""

    def __init__(self) -> None:
        numbers = itertools.count()
        self.clock = VirtualClock()
        self.runs = MemoryRunQueue(self.clock)
        self.timers = MemoryTimers(self.clock, lambda: f"id{next(numbers):08}", self.runs)
        self.store = MemoryStore(page_size=100_000)
        self.ports = Ports(
            store=self.store,
            runs=self.runs,
            timers=self.timers,
            clock=self.clock,
            new_id=lambda: f"id{next(numbers):08}",
        )
        self.orchestrator = Orchestrator(app, self.ports)
        self.client = Client(app, self.ports)

    def pump(self) -> int:
        """Handles what the queues hold; the number of deliveries."""
        handled = 0
        for queue in (self.runs, self.timers):
            for received in queue.receive():
                delivery = Delivery(id="d", body=received.body, arrived_at=received.sent_at, sequence=received.sequence)
                assert not self.orchestrator.process([delivery], remaining=100_000)
                queue.acknowledge(received.receipt)
                handled += 1
        return handled


def measure_steps(n: int) -> dict[str, Any]:
    """CPU for one run of n steps, and for replaying it."""
    world = World()
    world.client.start(steps, n, id="run")
    gc.collect()
    began = time.process_time()
    world.pump()
    forward = time.process_time() - began
    run = world.store.get("run")
    assert run is not None
    assert run.status == "completed", run.reason
    entries = sorted(unpacked(world.store.load("run").entries), key=lambda entry: entry.order)
    gc.collect()
    began = time.process_time()
    execution = open_execution(app, run, Loaded(entries=entries, messages=[], payloads={}))
    execution.advance()
    replay = time.process_time() - began
    assert execution.finished
    execution.unwind()
    return {
        "measure": "steps",
        "n": n,
        "forward_us": round(forward / n * 1e6, 1),
        "replay_us": round(replay / n * 1e6, 2),
    }


def measure_turns(n: int) -> dict[str, Any]:
    """Turns a second of one run that sleeps again and again."""
    world = World()
    world.client.start(sleeps, n, id="run")
    began = time.process_time()
    turns = 0
    while world.pump() or world.timers.pending:
        turns += 1
        world.clock.advance(61)
    return {"measure": "turns", "n": n, "turns_per_second": round(turns / (time.process_time() - began))}


def measure_fan_in(n: int = 1_000) -> dict[str, Any]:
    """CPU for each of so many results from elsewhere, workers and queues of the test kit included.

    Results come ten at a time, and each such turn replays those before: the cost of one grows with their number.
    """
    measured: dict[str, Any] = {"measure": "fan_in", "n": n}
    for workflow, name in ((calls, "fan_in_1000_us"), (children, "fan_in_1000_children_us")):
        env = TestEnvironment(app)
        gc.collect()
        began = time.process_time()
        assert env.start(workflow, n, id="run").result() == sum(range(n))
        measured[name] = round((time.process_time() - began) / n * 1e6)
    return measured


def measure_import(module: str, tries: int = 5) -> dict[str, Any]:
    """Import time of a handler as a ratio to boto3 alone: the best of a few, side by side."""
    mine = min(_import_seconds(module) for _ in range(tries))
    boto3 = min(_import_seconds("boto3") for _ in range(tries))
    return {
        "measure": "import",
        "module": module,
        "import_ratio": round(mine / boto3, 2),
        "boto3_ms": round(boto3 * 1e3),
    }


def _import_seconds(module: str) -> float:
    code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    environment = {**os.environ, "AWS_DEFAULT_REGION": "eu-central-1", "AWS_EC2_METADATA_DISABLED": "true"}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return float(answer.stdout)


def main() -> None:
    """Prints every measurement, with what it is meant to stay under."""
    results = [measure_steps(n) for n in (100, 1_000, 10_000)]
    results.append(measure_turns(500))
    results.append(measure_fan_in())
    results += [measure_import(f"handlers.{name}") for name in ("orchestrator", "maintenance", "api")]
    for result in results:
        targets = {f"{name}_target": TARGETS[name] for name in TARGETS if name in result}
        print(json.dumps(result | targets))


if __name__ == "__main__":
    main()
