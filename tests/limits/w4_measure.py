import time
from collections import Counter
from durable import *
from durable.testing import TestEnvironment
from durable.engine.options import EngineOptions
app=App("m")
GO=Signal("go", int)
@app.workflow
async def drain(ctx: Context, n: int) -> int:
    total=0
    for _ in range(n):
        total += (await ctx.mailbox.next(GO)).body
    return total
@app.workflow
async def batches(ctx: Context, n: int) -> int:
    seen=0
    while seen<n:
        seen += len(await ctx.mailbox.next_batch(GO, count=100))
    return seen
async def body(ctx, state):
    got = await ctx.mailbox.next_batch(GO, count=100)
    s = state+len(got)
    return Continue(s) if s < 10000 else Break(s)
body.__annotations__={"state": int, "return": Continue[int]|Break[int]}
@app.workflow
async def loop(ctx: Context, n: int) -> int:
    return await ctx.loop("l", body, state=0)
def nothing()->None: ...
@app.workflow
async def many(ctx: Context, n: int) -> int:
    for _ in range(n):
        await ctx.step(nothing)
    await ctx.wait_for_signal(GO)
    return n
for wf in (drain, batches, loop):
    for n in (10000,):
        with TestEnvironment(app) as env:
            h=env.start(wf,n,id="r"); env.run_until_idle()
            t=time.time()
            for i in range(n): env.send("r",GO,1)
            t1=time.time()
            before=len(env.calls)
            r=h.result()
            t2=time.time()
            c=Counter(env.calls[before:])
            print(wf.name,n,r,f"send {t1-t:.1f}s drain {t2-t1:.1f}s",dict(c.most_common(8)))
for n in (1000,5000,):
    with TestEnvironment(app) as env:
        t=time.time(); h=env.start(many,n,id="r"); env.run_until_idle(); t1=time.time(); env.restart(); h.send(GO,1); b=len(env.calls); h.result(); t2=time.time()
        print("many",n,f"{t1-t:.1f}s replay cold {t2-t1:.2f}s", dict(Counter(env.calls[b:])))
