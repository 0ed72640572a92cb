"""A value is the same on the first run and on replay: same type, equal, for everything that an annotation can name."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

from pydantic import BaseModel

from durable import App, Context
from tests.scenarios.conftest import World

app = App("values")


@dataclass
class Point:
    x: int
    y: float


class Order(BaseModel):
    id: UUID
    when: datetime
    total: Decimal
    lines: tuple[Point, ...]
    tags: set[str]
    notes: dict[int, str]
    day: date


ORDER = Order(
    id=UUID(int=7),
    when=datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    total=Decimal("30.40"),
    lines=(Point(1, 0.1 + 0.2), Point(2, 1e300)),
    tags={"a", "b"},
    notes={1: "one", -2: ""},
    day=date(2026, 1, 2),
)


def load() -> Order:
    return ORDER


def numbers() -> list[int | float]:
    return [0.1 + 0.2, 1e300, 2**80, 10**40, -0.0, 30.4]


@app.workflow
async def reader(ctx: Context) -> list[bool]:
    order, found = await ctx.step(load), await ctx.step(numbers)
    before = [order == ORDER, type(order.lines[0]) is Point, type(order.notes) is dict, found == numbers()]
    await ctx.sleep("1m")
    return [*before, order == ORDER]


def test_pay_06_pay_07_pay_09_values_keep_their_types_live_and_on_replay(world: World) -> None:
    env = world(app)
    handle = env.start(reader, id="r")
    env.run_until_idle()
    env.restart()
    assert handle.result() == [True] * 5
