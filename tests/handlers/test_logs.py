"""What the functions log: one JSON object a record, which tells its run, operation and attempt, and no payload."""

import asyncio
import io
import json
import logging
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from durable import App, Context, NonRetryableError, RunError, Signal, Step, StepFailed, step_context
from durable.logs import log_fields
from durable.settings import Settings
from durable.testing import TestEnvironment
from handlers import logs

SECRET = "s3cr3t"
GO = Signal("go", int)
shop = logging.getLogger("shop")
app = App("logging")


class LambdaLoggerHandler(logging.StreamHandler[Any]):
    """Called as the one of Lambda's runtime is."""


class Output(io.StringIO):
    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]

    def about(self, message: str) -> dict[str, Any]:
        [found] = [record for record in self.records if record["message"] == message]
        return {name: found[name] for name in ("run_id", "workflow", "location", "attempt") if name in found}


def settings(**fields: Any) -> Settings:
    known = {"app": "a:b", "table": "t", "runs_queue_url": "u", "runs_queue_arn": "a", "timers_queue_url": "u"}
    return Settings(**{**known, "schedule_group": "g", "schedule_role_arn": "r", **fields})


@contextmanager
def installed(**fields: Any) -> Generator[Output]:
    root, output = logging.getLogger(), Output()
    before = root.level, list(root.handlers)
    levels = {name: logging.getLogger(name).level for name in logs.CHATTY}
    logs.install(settings(**fields), output)
    try:
        yield output
    finally:
        root.handlers[:] = before[1]
        root.setLevel(before[0])
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


@pytest.fixture
def output() -> Generator[Output]:
    with installed(service="shop-stack", log_level="DEBUG") as stream:
        yield stream


def talks(amount: int) -> int:
    shop.info("charging %d", amount)
    return amount


async def talks_later() -> None:
    shop.info("later")


def fails_at_first() -> None:
    shop.info("try %d", step_context().attempt)
    if step_context().attempt == 1:
        raise ConnectionError


@app.remote_step(retries=1)
def prints(label: str) -> None:
    shop.info("printing")
    if step_context().attempt == 1:
        raise ConnectionError("no paper")


@app.workflow
async def shipping(ctx: Context) -> None:
    await ctx.call(prints, "x")


@app.workflow
async def selling(ctx: Context) -> int:
    shop.info("in the workflow")
    ctx.log.info("told")
    await ctx.step(talks_later)
    await ctx.step(fails_at_first)
    await ctx.step(talks, 5)
    return await ctx.wait_for_signal(GO)


def test_a_step_that_logs_tells_its_run_operation_and_attempt(output: Output) -> None:
    with TestEnvironment(app) as env:
        env.start(selling, id="r")
        env.advance("1m")
    run = {"run_id": "r", "workflow": "selling"}
    assert output.about("charging 5") == {**run, "location": "talks", "attempt": 1}
    assert output.about("later") == {**run, "location": "talks_later", "attempt": 1}
    assert output.about("try 1") == {**run, "location": "fails_at_first", "attempt": 1}
    assert output.about("try 2") == {**run, "location": "fails_at_first", "attempt": 2}


def test_a_remote_step_tells_the_same(output: Output) -> None:
    with TestEnvironment(app) as env:
        env.start(shipping, id="r").result()
    told = [record for record in output.records if record.get("location")]
    about = {(record["run_id"], record["workflow"], record["location"]) for record in told}
    assert about == {("r", "shipping", "prints")}
    assert [record["attempt"] for record in told if record["message"] == "printing"] == [1, 2]
    assert [record["attempt"] for record in told if "failed: ConnectionError" in record["message"]] == [1]


def test_workflow_code_tells_its_run(output: Output) -> None:
    with TestEnvironment(app) as env:
        env.start(selling, id="r")
        env.run_until_idle()
    run = {"run_id": "r", "workflow": "selling"}
    assert output.about("told") == run
    assert output.about("in the workflow") == run


def test_what_durable_says_about_a_run_tells_the_run(output: Output) -> None:
    with TestEnvironment(app) as env:
        env.start(selling, id="r")
        env.send("r", "go", "no number")
        env.advance("1m")
    [unread] = [record for record in output.records if "stays unread" in record["message"]]
    assert (unread["level"], unread["name"], unread["run_id"], unread["workflow"]) == (
        "WARNING", "durable", "r", "selling",
    )  # fmt: skip


def test_a_turn_that_fails_tells_the_run(output: Output) -> None:
    with TestEnvironment(app) as env:
        env.faults.fail_next_call("store.put_entry")
        env.start(selling, id="r")
        env.run_until_idle()
    [failed] = [record for record in output.records if "put_entry" in record["message"]]
    assert (failed["run_id"], failed["workflow"]) == ("r", "selling")


def test_what_is_about_no_run_says_so_by_saying_nothing(output: Output) -> None:
    shop.warning("hello")
    [record] = output.records
    assert record.keys() == {"level", "message", "timestamp", "service", "name", "funcName", "lineno"}
    assert (record["service"], record["level"], record["message"]) == ("shop-stack", "WARNING", "hello")
    assert log_fields() == {}


def test_what_a_record_says_itself_stays(output: Output) -> None:
    def body() -> None:
        shop.info("mine", extra={"run_id": "theirs", "location": "shelf 3", "amount": 5})

    mine = App("mine")

    @mine.workflow
    async def logging_more(ctx: Context) -> None:
        await ctx.step(body)

    with TestEnvironment(mine) as env:
        env.start(logging_more, id="r").result()
    assert output.about("mine") == {"run_id": "theirs", "workflow": "logging_more", "location": "shelf 3", "attempt": 1}


def test_an_error_is_told_with_its_trace(output: Output) -> None:
    try:
        int("no")
    except ValueError:
        shop.exception("failed")
    [record] = output.records
    assert record["exception_name"] == "ValueError"
    assert "Traceback" in record["exception"]
    assert len(output.getvalue().splitlines()) == 1


def test_the_level_is_that_of_the_settings() -> None:
    with installed(log_level="WARNING") as output:
        shop.info("quiet")
        shop.warning("loud")
        logging.getLogger("botocore.credentials").info("chatty")
    assert [record["message"] for record in output.records] == ["loud"]


def test_libraries_do_not_chat_at_level_info() -> None:
    with installed(log_level="INFO") as output:
        logging.getLogger("botocore.credentials").info("found credentials")
    assert not output.records


def test_people_at_a_terminal_get_lines_of_text() -> None:
    with installed(log_format="text") as output, TestEnvironment(app) as env:
        shop.warning("hello")
        env.start(selling, id="r")
        env.run_until_idle()
    lines = [line.partition(" ")[2] for line in output.getvalue().splitlines()]
    assert lines[0] == "WARNING shop: hello"
    assert "INFO    [r selling] shop: in the workflow" in lines
    assert "INFO    [r selling talks_later #1] shop: later" in lines


def test_lambdas_own_handler_gives_way_and_a_second_installation_changes_nothing() -> None:
    lambdas, users = LambdaLoggerHandler(io.StringIO()), logging.StreamHandler(io.StringIO())
    with installed():
        root = logging.getLogger()
        root.addHandler(lambdas)
        root.addHandler(users)
        again = Output()
        ours = logs.install(settings(), again)
        shop.warning("once")
        assert [handler for handler in root.handlers if handler in {ours, lambdas, users}] == [users, ours]
    assert len(again.records) == 1
    assert lambdas.stream.getvalue() == ""


def test_powertools_is_loaded_by_the_first_record() -> None:
    program = (
        "import logging, sys; from handlers import logs; from tests.handlers.test_logs import settings;"
        "loaded = lambda: 'aws_lambda_powertools' in sys.modules;"
        "logs.install(settings(), sys.stderr); print(loaded()); logging.warning('x'); print(loaded())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
    assert json.loads(done.stderr)["message"] == "x"


def test_a_container_logs_so_from_its_first_moment() -> None:
    program = (
        "import logging; from handlers import bootstrap; bootstrap.container(); logging.getLogger('shop').info('x')"
    )
    variables = {f"DURABLE_{name.upper()}": str(value) for name, value in settings().model_dump().items() if value}
    variables |= {"DURABLE_APP": "examples.orders.app:app", "DURABLE_STEPS_QUEUES": "{}", "AWS_REGION": "eu-central-1"}
    variables |= {
        "POWERTOOLS_SERVICE_NAME": "my-stack",
        "POWERTOOLS_LOG_LEVEL": "info",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=variables)
    record = json.loads(done.stdout)
    assert (record["level"], record["message"], record["service"]) == ("INFO", "x", "my-stack")


# No payloads

secretive = App("secretive")


def keeps(secret: str) -> str:
    return f"{secret} kept"


def declines(secret: str) -> None:
    raise ConnectionError(f"declined {secret}")


@secretive.remote_step(retries=1)
def refuses(secret: str) -> None:
    raise ConnectionError(f"refused {secret}")


def cannot_undo(_result: str, secret: str) -> None:
    raise NonRetryableError(f"undo of {secret}")


@secretive.workflow
async def child(ctx: Context, secret: str) -> str:
    return await ctx.step(keeps, secret)


async def forgotten(secret: str) -> None:
    raise KeyError(secret)


@secretive.workflow
async def messy(ctx: Context, secret: str) -> None:
    lost = asyncio.create_task(forgotten(secret))
    try:
        await ctx.wait_for_signal(GO)
    finally:
        del lost
        raise ValueError(secret)


@secretive.workflow
async def secretly(ctx: Context, secret: str) -> str:
    await ctx.step(Step().undo(cannot_undo), keeps, secret)
    await ctx.child(child, secret)
    with suppress(StepFailed):
        await ctx.call(refuses, secret)
    ctx.set_state("progress", secret)
    await ctx.wait_for_signal(GO, timeout="1h")
    await ctx.try_step(Step(retries=1), declines, secret)
    raise ValueError(f"ended by {secret}")


def test_no_payload_reaches_the_log(output: Output) -> None:
    with TestEnvironment(secretive) as env:
        handle = env.start(secretly, SECRET, id="r", headers={"token": SECRET})
        env.run_until_idle()
        env.send("r", "go", {"not a number": SECRET})
        env.send("r", "unheard of", SECRET)
        env.advance("1m")
        handle.send(GO, 1)
        with pytest.raises(RunError):
            handle.result()
        assert SECRET in str(env.get("r").error)
        env.start(messy, SECRET)
        env.run_until_idle()
    told = output.getvalue()
    assert "stays unread" in told
    assert "messy raised ValueError" in told
    assert SECRET not in told
