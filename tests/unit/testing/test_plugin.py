"""`durable_env` gives an environment, and a test fails whose workflow does what cannot be replayed."""

import sys

import pytest

from durable.testing.watching import watch

pytest_plugins = ["pytester"]

MODULE = """
import socket, time, uuid, random
import datetime as dt
from datetime import datetime

import pytest
from durable import App, Branch, Break, Context, Continue

app = App("checked")


def clock() -> float:
    return time.time()


def connect() -> None:
    socket.create_connection(("127.0.0.1", 9))


async def block(ctx: Context) -> str:
    return str(uuid.uuid4())
"""

HARMLESS = """
@app.workflow
async def fine(ctx: Context) -> str:
    at = ctx.now()
    drawn = ctx.random.random()
    await ctx.step("a", clock)
    await ctx.step("b", lambda: datetime.now().isoformat())

    async def asks() -> float:
        return time.time()

    await ctx.step("c", asks)
    return f"{at} {drawn}"


def test_it(durable_env):
    env = durable_env(app)
    assert env.start(fine).result()
"""

CAREFREE = {
    "datetime.datetime.now": "datetime.now()",
    "time.time": "time.time()",
    "datetime.date.today": "dt.date.today()",
    "uuid.uuid4": "uuid.uuid4()",
    "random.randint": "random.randint(1, 6)",
}


def workflow(line: str) -> str:
    return f"""
@app.workflow
async def careless(ctx: Context) -> str:
    {line}
    return ""
"""


TEST = """
def test_it(durable_env):
    durable_env(app).start(careless).result()
"""


watch()
"""Made before pytester runs anything: it would forget the module after each run, and the audit hook would stay."""


@pytest.fixture
def outcome(pytester: pytest.Pytester):
    def run(text: str, **counts: int) -> str:
        pytester.makepyfile(MODULE + text)
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:timeout")
        result.assert_outcomes(**counts)
        return result.stdout.str()

    return run


def test_workflows_that_keep_to_the_rules_pass(outcome) -> None:
    outcome(HARMLESS, passed=1)


def test_a_clock_or_chance_in_the_source_fails_the_test(outcome) -> None:
    every = workflow("; ".join(CAREFREE.values()))
    told = outcome(every + TEST, failed=1)
    for call in CAREFREE:
        assert f'workflow "careless" calls {call}(), and workflow code is replayed: use ctx.' in told


def test_blocks_inside_and_beside_the_workflow_are_looked_at(outcome) -> None:
    beside = workflow('await ctx.join("j", Branch("a", block))')
    assert "calls uuid.uuid4()" in outcome(beside + TEST, failed=1)
    inside = workflow("\n    async def body(ctx: Context) -> Break[float]:\n        return Break(time.time())\n")
    assert "calls time.time()" in outcome(inside + TEST, failed=1)


NOT_AUDITED = pytest.mark.skipif(sys.version_info < (3, 13), reason="time.sleep has an audit event from Python 3.13 on")


@pytest.mark.parametrize(
    ("line", "told"),
    [("connect()", "network I/O"), pytest.param("time.sleep(0.001)", "time.sleep()", marks=NOT_AUDITED)],
)
def test_what_a_helper_function_does_is_caught_when_it_runs(outcome, line: str, told: str) -> None:
    without_look = "def test_it(durable_env):\n    durable_env(app, check=False).start(careless).result()\n"
    assert f"{told} is not possible in workflow code" in outcome(workflow(line) + without_look, failed=1)


def test_a_misuse_that_the_test_overlooks_fails_it_all_the_same(outcome) -> None:
    overlooked = """
def test_it(durable_env):
    env = durable_env(app)
    env.start(careless)
    env.run_until_idle()
"""
    assert "network I/O is not possible" in outcome(workflow("connect()") + overlooked, passed=1, errors=1)


def test_the_look_at_the_source_can_be_left_out(outcome) -> None:
    waived = "def test_it(durable_env):\n    durable_env(app, check=False).start(careless).result()\n"
    outcome(workflow("x = time.time()") + waived, passed=1)
