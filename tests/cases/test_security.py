"""Troubles with security that users of such systems have had, tried on this one."""

import logging
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable import (
    App,
    Context,
    InvalidName,
    InvalidToken,
    NonRetryableError,
    RunBlocked,
    RunEnded,
    RunNotFound,
    Signal,
    StateKey,
    Step,
    TokenExpired,
)
from durable.adapters.timers import schedule_name
from durable.errors import DurableError, ErrorInfo
from durable.failures import rebuild
from durable.local.template import Template, references
from durable.testing import TestEnvironment
from handlers.api import build
from handlers.runs import Runs
from tests.cases.http import caller
from tests.cli.serving import commands, served

GO = Signal("go", str)
ADDRESS = StateKey("address", str)
EVIL = "<img src=x onerror=alert(1)>\x1b]0;title\x07\x1b[31m\x9b31m"
app = App("security")
tokens: dict[str, str] = {}


def work(n: object = 0) -> Any:
    return n


def routes() -> list[tuple[str, str]]:
    env = TestEnvironment(app)
    api = build(Runs(app, env, env.ports))
    return [(route.method, str(route.rule.pattern)) for route in api._static_routes + api._dynamic_routes]


# SEC-01


def test_SEC_01_the_api_is_closed_by_default_and_the_open_routes_need_a_token(template: Template) -> None:
    assert template.body["Parameters"]["ApiAuth"]["Default"] == "AWS_IAM"
    for route in template.of_type("AWS::ApiGatewayV2::Route").values():
        if route["AuthorizationType"] == "NONE":
            assert "{token}" in route["RouteKey"]
        else:
            assert route["AuthorizationType"] == {"Ref": "ApiAuth"}
    apis = template.of_type("AWS::ApiGatewayV2::Api").values()
    assert not any("CorsConfiguration" in api for api in apis)
    assert not template.of_type("AWS::Lambda::Url")


CHANGES = [
    "/runs", "/runs/r/cancel", "/runs/r/terminate", "/runs/r/retry", "/runs/r/resume", "/runs/r/messages",
    "/runs/r/continue", "/events/x", "/runs/r/updates/x", "/runs/r/reviews",
]  # fmt: skip


def test_SEC_01_nothing_is_changed_by_get() -> None:
    """So whoever may read may be given GET alone: API Gateway tells methods apart."""
    env = TestEnvironment(app)
    env.start(listens, id="r")
    env.run_until_idle()
    before = env.get("r"), env.world.services.runs.pending
    for path in CHANGES:
        caller(env)("GET", path)
    assert (env.get("r"), env.world.services.runs.pending) == before
    assert {method for method, pattern in routes() if pattern.endswith(("cancel$", "retry$", "resume$"))} == {"POST"}


# SEC-02


def submit_a(token: str) -> None:
    tokens["a"] = token


def submit_b(token: str) -> None:
    tokens["b"] = token


@app.workflow
async def two_callbacks(ctx: Context) -> list[str]:
    first = await ctx.callback("a", submit_a, str, timeout="1h")
    second = await ctx.callback("b", submit_b, str, timeout="1h")
    await ctx.wait_for_signal(GO)
    return [first, second]


@app.workflow
async def hooked(ctx: Context) -> str:
    ctx.set_state(ADDRESS, ctx.webhook("hook").url)
    return await ctx.wait_for_signal(GO)


def test_SEC_02_a_token_is_good_for_its_own_wait_once_unaltered_and_for_a_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    env = TestEnvironment(app)
    handle = env.start(two_callbacks, id="r")
    hook = env.start(hooked, id="h")
    env.run_until_idle()
    token = tokens["a"]
    payload, _, signature = token.partition(".")
    for altered in (f"{payload[:-2]}xx.{signature}", f"{payload}.{signature[:-2]}xx", payload, "r", "", f"{token}x"):
        with pytest.raises(InvalidToken):
            env.complete_callback(altered, "forged")
    env.complete_callback(token, "first")
    env.run_until_idle()
    env.complete_callback(token, "again")  # of wait "a", which is over: nothing for wait "b"
    env.run_until_idle()
    assert '"b"' in str(env.get("r").reason)
    address = env.get_state(hook.id, ADDRESS)
    assert address is not None
    with pytest.raises(InvalidToken):
        env.complete_callback(address.rpartition("/")[2], "of another kind")
    env.complete_callback(tokens["b"], "second")
    handle.send(GO, "x")
    assert handle.result() == ["first", "second"]
    with pytest.raises(RunEnded):
        env.complete_callback(tokens["b"], "late")
    late = env.start(two_callbacks, id="late")
    env.run_until_idle()
    env.terminate(late.id)
    env.advance(days=2)
    with pytest.raises((RunEnded, TokenExpired)):
        env.complete_callback(tokens["a"], "late")
    env.delete(late.id)
    with pytest.raises((RunNotFound, TokenExpired)):
        env.complete_callback(tokens["a"], "late")
    assert not [record for record in caplog.records if token in record.getMessage() or signature in str(record.args)]


# SEC-03


class EvilError(Exception):
    pass


@app.workflow
async def evil(ctx: Context, text: str) -> str:
    ctx.log.info("%s", text)
    ctx.add_tags("<b>tag</b>")
    await ctx.step(f"<i>{work.__name__}</i>", work, text)
    raise EvilError(text)


@app.workflow
async def listens(ctx: Context) -> str:
    return await ctx.wait_for_signal(GO)


def test_SEC_03_what_users_wrote_is_answered_as_json_and_cannot_steer_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    env = TestEnvironment(app)
    env.start(evil, EVIL, id="r")
    env.run_until_idle()
    for path in ("/runs/r", "/runs/r/history", "/runs?workflow=evil", "/runs/r/export", f"/{EVIL}", "/runs/<b>"):
        answer = caller(env)("GET", path)
        headers = {**answer.get("headers", {}), **{k: v[0] for k, v in answer.get("multiValueHeaders", {}).items()}}
        kind = {name.lower(): value for name, value in headers.items()}["content-type"]
        assert kind in {"application/json", "application/problem+json"}
        assert "html" not in kind
    with served(env) as url:
        call = commands(url, capsys)
        for arguments in (["show", "r"], ["runs"], ["runs", "--workflow", "evil"]):
            _, out, err = call(*arguments)
            assert not set(out + err) & {"\x1b", "\x07", "\x9b"}


# SEC-04

NAMES = st.text(min_size=1, max_size=40)


def allowed_id(text: str) -> bool:
    env = TestEnvironment(app)
    try:
        env.start(listens, id=text)
    except InvalidName:
        return False
    return True


@given(st.lists(NAMES, min_size=2, max_size=2, unique=True), st.lists(NAMES, min_size=2, max_size=2, unique=True))
def test_SEC_04_two_names_never_come_to_one_place(signals: list[str], texts: list[str]) -> None:
    env = TestEnvironment(app)
    env.start(listens, id="r")
    names = [name for name in signals if name.isprintable() and name.isascii()]
    for name, text in zip(names, texts, strict=False):
        try:
            env.send("r", name, text, id=name.encode().hex())
        except (InvalidName, ValueError):
            continue
    env.run_until_idle()
    assert env.get("r").status in {"suspended", "completed"}


@pytest.mark.parametrize(
    ("one", "other"),
    [("A", "a"), ("x" * 64 + "1", "x" * 64 + "2"), ("run", "run.1"), ("h", "m")],
    ids=["case", "long", "dot", "letters"],
)
def test_SEC_04_ids_that_are_nearly_alike_are_two_runs(one: str, other: str) -> None:
    env = TestEnvironment(app)
    handles = [env.start(listens, id=run_id) for run_id in (one, other)]
    env.run_until_idle()
    handles[0].send(GO, "only the first")
    assert handles[0].result() == "only the first"
    assert handles[1].status() == "suspended"
    assert schedule_name(one, 1.0) != schedule_name(other, 1.0)
    assert len(schedule_name("x" * 128, 1e9)) <= 64


@pytest.mark.parametrize("run_id", ["A#B", "run#r", "a\x00b", "a#b#c", "~", "#"])
def test_SEC_04_our_own_separators_are_no_part_of_ids(run_id: str) -> None:
    assert not allowed_id(run_id)


def test_SEC_04_separators_in_names_of_operations_make_no_two_of_them_one() -> None:
    @app.workflow
    async def nests(ctx: Context) -> list[str]:
        async def inner(c: Context) -> str:
            return await c.step("b#2", work, "inner")

        results = [
            await ctx.step(name, work, name) for name in ("a/b", "a%2Fb", "a#1", "a@1", "a?1", "a~1", "a!", "a^")
        ]
        return [*results, (await ctx.try_block("a", inner)).unwrap(), await ctx.step("a/b#2", work, "outer")]

    env = TestEnvironment(app)
    handle = env.start(nests, id="r")
    assert handle.result() == ["a/b", "a%2Fb", "a#1", "a@1", "a?1", "a~1", "a!", "a^", "inner", "outer"]
    places = [(entry.location, entry.mark) for entry in env.history("r")]
    assert len(places) == len(set(places))


# SEC-05


def test_SEC_05_no_role_reaches_beyond_the_stack_and_only_the_scheduler_is_passed_a_role(template: Template) -> None:
    own = set(template.body["Resources"]) | {"KmsKeyArn"}
    for role in template.of_type("AWS::IAM::Role").values():
        for statement in (s for policy in role["Policies"] for s in policy["PolicyDocument"]["Statement"]):
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
            assert not [action for action in actions if "*" in action]
            assert "*" not in resources
            assert all(references(resource) & own for resource in resources)
            if "iam:PassRole" in actions:
                assert resources == [{"Fn::GetAtt": ["ScheduleRole", "Arn"]}]
                assert statement["Condition"]["StringEquals"]["iam:PassedToService"] == "scheduler.amazonaws.com"
    (trust,) = template.of_type("AWS::IAM::Role")["ScheduleRole"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Condition"]["StringEquals"].keys() == {"aws:SourceAccount", "aws:SourceArn"}


# SEC-06


@pytest.mark.parametrize(
    "crafted",
    [
        ErrorInfo(type="system", module="os", message="echo"),
        ErrorInfo(type="Popen", module="subprocess", message="echo"),
        ErrorInfo(type="Anything", module="antigravity", message="opens a browser"),
        ErrorInfo(type="SystemExit", module="builtins", message="1"),
    ],
)
def test_SEC_06_a_crafted_error_imports_and_calls_nothing(crafted: ErrorInfo) -> None:
    before = set(sys.modules)
    assert type(rebuild(crafted)) is DurableError
    assert "antigravity" not in set(sys.modules) - before


def undone(result: str) -> None: ...


@app.workflow
async def undoes(ctx: Context) -> None:
    await ctx.step(Step("did").undo(undone), work)
    await ctx.step(Step("fails", retries=0), work)


def test_SEC_06_an_undo_that_the_table_names_is_called_only_if_it_is_the_apps_own() -> None:
    env = TestEnvironment(app)
    env.mock("fails").raises(NonRetryableError("no"))
    env.crash_at(7)
    env.start(undoes, id="r")
    env.run_until_idle()
    store = env.world.services.memory
    for entry in store.history("r"):
        if entry.compensation is not None:
            crafted = replace(entry.compensation, fn="os:getcwd")
            store.put_entry("r", replace(entry, compensation=crafted))
    with pytest.raises(RunBlocked, match="undone by os:getcwd, and a rollback calls functions of the app's own"):
        env.result("r")


# SEC-07


def test_SEC_07_bodies_are_not_logged_and_a_codec_keeps_them_out_of_table_and_queues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)

    class Sealing:
        def seal(self, data: bytes, context: Any) -> bytes:
            return bytes(byte ^ 0x5A for byte in data)

        def open(self, data: bytes, context: Any) -> bytes:
            return bytes(byte ^ 0x5A for byte in data)

    sealed = App("sealed", codec=Sealing())

    @sealed.workflow
    async def keeps(ctx: Context, secret: str) -> str:
        found = await ctx.step(work, secret)
        return found + await ctx.wait_for_signal(GO)

    env = TestEnvironment(sealed)
    handle = env.start(keeps, "s3cr3t", id="r")
    handle.send(GO, "s3cr3t too")
    queued = str([message.body for message in env.world.services.runs.pending])
    assert handle.result() == "s3cr3ts3cr3t too"
    raw = env.world.services.memory
    stored = queued + str(raw.runs) + str(raw.history("r")) + str(vars(raw))
    assert "sealed:" in stored
    assert "s3cr3t" not in stored
    assert "s3cr3t" not in caplog.text
