import asyncio
from typing import Any
import pytest
from pydantic import BaseModel
from durable import *
from durable.testing import TestEnvironment, kill_process
GO = Signal("go", str)
PAID = Event("paid", int)
app = App("x")

@app.workflow
async def kid(ctx: Context, n: int) -> str:
    return f"{n} {await ctx.wait_for_signal(GO)}"

@app.workflow
async def selfish(ctx: Context, n: int) -> str:
    return await ctx.child(selfish, n, id="me")

def test_self():
    with TestEnvironment(app) as env:
        with pytest.raises(RunFailed):
            env.start(selfish, 1, id="me").result()

@app.workflow
async def two_waits(ctx: Context) -> list[int]:
    a = await ctx.wait_for_event(PAID)
    b = await ctx.wait_for_event(PAID, timeout="1h", default=-1)
    return [a, b]

def test_dup_event():
    with TestEnvironment(app) as env:
        h = env.start(two_waits)
        env.run_until_idle()
        env.faults.duplicate_next()
        env.publish_event(PAID, 1, id="e1")
        env.run_until_idle()
        env.publish_event(PAID, 1, id="e1")
        assert h.result() == [1, -1]

@app.workflow
async def swm(ctx: Context) -> str:
    first = await ctx.wait_for_signal(GO)
    if first == "continue":
        return await ctx.continue_as_new(swm)
    return first

def test_swm_after_continue_and_end():
    with TestEnvironment(app) as env:
        env.start_with_message(swm, None, GO, "continue", id="s")
        env.run_until_idle()
        env.start_with_message(swm, None, GO, "x", id="s")
        assert env.result("s") == "x"
        with pytest.raises(RunEnded):
            env.start_with_message(swm, None, GO, "x", id="s")

# retry w/ open things in blocks
def bad(): 
    if MOOD["bad"]: raise NonRetryableError("no")
MOOD = {"bad": True}

@app.workflow
async def joins(ctx: Context) -> str:
    async def a(ctx): return await ctx.child(kid, 1)
    async def b(ctx): await ctx.step(bad); return ""
    async def c(ctx):
        await ctx.sleep("1m")
        raise ValueError("c")
    x = await ctx.race("r", Branch("a", a), Branch("b", b), settle="first")
    return str(x.value)

def test_race_first_settled_fails_then_retry():
    MOOD["bad"] = True
    with TestEnvironment(app) as env:
        h = env.start(joins, id="p")
        with pytest.raises(RunFailed): h.result()
        env.advance(minutes=2)
        print([(e.key, e.error and e.error.type) for e in env.history("p")], [ (r.id, env.get(r.id).status) for r in env.list(workflow="kid").runs])
        MOOD["bad"] = False
        env.retry("p")
        print(h.result())

@app.workflow
async def loops(ctx: Context) -> str:
    async def body(ctx: Context, n: int):
        h = await ctx.start_child(kid, n, id=f"k{n}")
        await ctx.step("maybe", bad) if n == 3 else None
        await h.cancel()
        if n == 5: return Break("done")
        return Continue(n + 1)
    return await ctx.loop("l", body, state=0, history=1)

def test_loop_children_retry():
    MOOD["bad"] = True
    with TestEnvironment(app) as env:
        h = env.start(loops, id="p")
        with pytest.raises(RunFailed): h.result()
        env.advance(minutes=2)
        MOOD["bad"] = False
        env.retry("p")
        print(h.result())
        env.advance(minutes=2)
        print([ (r.id, env.get(r.id).status) for r in env.list(workflow="kid").runs])

@app.workflow
async def rolled(ctx: Context) -> str:
    await ctx.step(Step("x").undo(undo), work)
    t = asyncio.create_task(ctx.child(kid, 1, id="kk"))
    await ctx.sleep("1m")
    await ctx.step("bad", bad)
    return await t
def work() -> str: return "x"
def undo(r: str) -> None: pass

@pytest.mark.parametrize("mode", ["fail", "compensate"])
def test_rollback_children(mode):
    MOOD["bad"] = True
    with TestEnvironment(app) as env:
        h = env.start(rolled, id="p")
        env.run_until_idle()
        if mode == "compensate": env.cancel("p", "compensate")
        with pytest.raises(RunError): h.result()
        env.advance(minutes=2)
        assert env.get("kk").status == "cancelled"
        if mode == "fail":
            MOOD["bad"] = False
            env.retry("p")
            env.advance(minutes=2)
            print([(r.id, env.get(r.id).status) for r in env.list(workflow="kid").runs], env.get("p").reason)
            (open_,) = [r.id for r in env.list(workflow="kid").runs if env.get(r.id).status == "suspended"]
            env.send(open_, GO, "y")
            assert h.result() == "1 y"
