"""`except CardDeclined` catches what a step raised, live and on replay, with its data."""

from durable import App, Context, Step, StepFailed
from tests.scenarios.conftest import World

app = App("errors")


class CardDeclined(Exception):
    def __init__(self, *, code: str) -> None:
        super().__init__(f"declined: {code}")
        self.code = code


def charge(code: str) -> str:
    raise CardDeclined(code=code)


@app.workflow
async def shop(ctx: Context, code: str) -> list[str]:
    try:
        await ctx.step(Step(retries=0), charge, code)
    except CardDeclined as declined:
        seen = f"{isinstance(declined, StepFailed)} {declined.code}"
        await ctx.sleep("1h")  # so that the next turn replays this branch
        return [seen, str(declined)]
    return ["charged"]


def test_pay_04_the_users_class_is_caught_live_and_on_replay(world: World) -> None:
    env = world(app)
    handle = env.start(shop, "no funds", id="r")
    env.run_until_idle()
    env.restart()
    seen, text = handle.result()
    assert seen == "True no funds"
    assert "declined: no funds" in text
