"""A wake of a run that has ended is answered with one request and changes nothing."""

from durable import App, Context, Signal
from tests.scenarios.conftest import World

GO = Signal("go", int)
app = App("stale")


@app.workflow
async def impatient(ctx: Context) -> str:
    message = await ctx.mailbox.next(GO, timeout="5h", default=None)
    return "heard" if message is not None else "silence"


def test_tmr_03_tmr_06_a_run_ends_at_once_and_its_unused_timer_does_nothing(world: World) -> None:
    env = world(app)
    handle = env.start(impatient, id="r")
    env.run_until_idle()
    handle.send(GO, 1)
    env.run_until_idle()
    assert env.get("r").status == "completed"
    before, calls = env.history("r"), len(env.calls)
    env.advance(hours=6)
    assert env.calls[calls:] == ["timers.send", "store.acquire"]  # schedules fire early and are forwarded
    assert env.history("r") == before
    assert handle.result() == "heard"
