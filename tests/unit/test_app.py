import threading
from typing import Any

import pytest
from pydantic import BaseModel

from durable.app import App
from durable.channels import Update
from durable.codec import UNTYPED
from durable.context import Context
from durable.definitions import Cron, cron, every
from durable.errors import InvalidName, LimitExceeded, NotAvailable, UnknownWorkflow, WorkflowNotRegistered


class Order(BaseModel):
    id: str


class Receipt(BaseModel):
    id: str


def test_a_workflow_keeps_what_its_decorator_says() -> None:
    app = App("shop")

    @app.workflow(version="2", tags=["shop"], timeout="30 days", retention="90 days")
    async def fulfil(ctx: Context, order: Order) -> Receipt: ...

    assert (fulfil.name, fulfil.version, fulfil.tags) == ("fulfil", "2", ("shop",))
    assert fulfil.timeout == 30 * 86_400
    assert fulfil.retention == dict.fromkeys(("cancelled", "completed", "dead", "failed", "timed_out"), 90 * 86_400)
    assert (fulfil.takes_input, fulfil.input_type, fulfil.output_type) == (True, Order, Receipt)
    assert app.find("fulfil", "2") is fulfil


def test_a_workflow_may_take_nothing_and_give_nothing() -> None:
    app = App("shop")

    @app.workflow
    async def nightly(ctx: Context) -> None: ...

    assert (nightly.takes_input, nightly.input_type, nightly.output_type) == (False, type(None), type(None))
    assert nightly.version == "1"


def test_a_workflow_without_annotations_takes_plain_json() -> None:
    app = App("shop")

    @app.workflow
    async def loose(ctx, order): ...

    assert (loose.input_type, loose.output_type) == (UNTYPED, UNTYPED)


def test_annotations_may_be_texts_that_name_local_classes() -> None:
    class Local(BaseModel):
        id: str

    app = App("shop")

    @app.workflow
    async def one(ctx: Context, order: "Local") -> "list[Local]": ...

    @app.workflow(name="two")
    async def two(ctx: Context, order: "Local") -> "Local": ...

    assert (one.input_type, one.output_type) == (Local, list[Local])
    assert two.output_type is Local


def sync(ctx, order): ...
async def nothing(): ...
async def two_inputs(ctx, a, b): ...
async def keyword_input(ctx, *, order): ...
async def many_inputs(ctx, *orders): ...
async def input_with_default(ctx, order=None): ...


@pytest.mark.parametrize(
    ("fn", "problem"),
    [
        (sync, 'must be an "async def"'),
        (nothing, "takes nothing: it must take the context and at most one input"),
        (two_inputs, "takes ctx, a, b"),
        (keyword_input, "takes ctx, order"),
        (many_inputs, "takes ctx, orders"),
        (input_with_default, "has a default for order"),
    ],
)
def test_a_function_of_another_shape_is_no_workflow(fn, problem) -> None:
    with pytest.raises(TypeError, match=problem):
        App("shop").workflow(fn)


def test_new_runs_take_the_newest_version_and_old_ones_are_found() -> None:
    app = App("shop")
    for version in ("2", "10", "9", "2.1", "2.1-beta"):

        @app.workflow(name="fulfil", version=version)
        async def fulfil(ctx: Context) -> None: ...

    assert app.newest("fulfil").version == "10"
    assert [w.version for w in app.workflows] == ["2", "2.1", "2.1-beta", "9", "10"]
    with pytest.raises(UnknownWorkflow, match=r"fulfil 2, fulfil 2\.1"):
        app.find("fulfil", "3")
    with pytest.raises(UnknownWorkflow, match="registered: fulfil"):
        app.find("gone", "1")
    with pytest.raises(WorkflowNotRegistered, match='no workflow "gone"; registered: fulfil'):
        app.newest("gone")


def test_one_name_and_version_is_registered_once() -> None:
    app = App("shop")

    @app.workflow
    async def fulfil(ctx: Context) -> None: ...

    with pytest.raises(ValueError, match="registered twice"):
        app.workflow(fulfil.fn)


def test_bad_options_are_refused_at_the_decorator() -> None:
    app = App("shop")
    with pytest.raises(ValueError, match="no unit"):
        app.workflow(timeout="30")(nothing_wrong)
    with pytest.raises(LimitExceeded, match="tags"):
        app.workflow(tags=[f"t{n}" for n in range(11)])(nothing_wrong)
    with pytest.raises(InvalidName, match="workflow name"):
        app.workflow(name="a\nb")(nothing_wrong)
    with pytest.raises(InvalidName, match="app name"):
        App("")


async def nothing_wrong(ctx): ...


def test_a_workflow_or_remote_step_that_is_called_says_what_to_do() -> None:
    app = App("shop")

    @app.workflow
    async def fulfil(ctx: Context, order: Order) -> Receipt: ...

    @app.remote_step(queue="labels")
    def print_label(order: Order) -> str:
        return order.id

    with pytest.raises(
        TypeError,
        match=r"fulfil is a workflow: use await ctx.child\(fulfil, ...\), client.start\(fulfil, ...\), or await fulfil.fn",
    ):
        fulfil(None, Order(id="x"))  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r'print_label is a remote step \(queue "labels"\). Use await ctx.call'):
        print_label(Order(id="x"))  # pyright: ignore[reportCallIssue]
    assert print_label.fn(Order(id="x")) == "x"


def test_a_remote_step_keeps_what_its_decorator_says() -> None:
    app = App("shop")

    @app.remote_step(queue="labels", retries=5, timeout="5m", heartbeat="30s")
    async def print_label(order: Order) -> Receipt: ...

    assert (print_label.queue, print_label.retries, print_label.timeout, print_label.heartbeat) == (
        "labels",
        5,
        300,
        30,
    )
    assert print_label.output_type is Receipt
    with pytest.raises(ValueError, match="registered twice"):
        app.remote_step(print_label.fn)


def test_services_are_built_once_by_the_first_step_that_asks() -> None:
    built: list[int] = []
    app = App("shop", services=lambda: built.append(1) or object())
    assert not built
    threads = [threading.Thread(target=lambda: app.services) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [1]
    assert app.services is app.services
    assert App("shop").services is None


def test_a_validator_is_kept_with_the_type_of_its_update() -> None:
    app = App("shop")
    workflow = app.workflow(nothing_wrong)

    @workflow.validator(Update("rename", str, int))
    def check(name: str) -> None: ...

    assert workflow.validators["rename"] == (str, check)


@pytest.mark.parametrize(
    "register",
    [
        lambda app, workflow: app.schedule("nightly", cron("0 2 * * ? *"), workflow),
    ],
)
def test_what_would_not_work_yet_cannot_be_registered(register) -> None:
    app = App("shop")
    workflow = app.workflow(nothing_wrong)
    with pytest.raises(NotAvailable, match="not available in this version"):
        register(app, workflow)


def test_schedules_are_values() -> None:
    assert cron("0 2 * * ? *", timezone="Europe/Berlin") == Cron("cron(0 2 * * ? *)", "Europe/Berlin")
    assert every("5m").expression == "every(300s)"


class Plain:
    def __init__(self, id: str) -> None:
        self.id = id


def test_a_workflow_that_takes_or_returns_a_plain_class_is_refused() -> None:
    app = App("shop")

    async def takes(ctx: Context, order: Plain) -> None: ...

    async def returns(ctx: Context) -> Plain: ...

    for workflow, verb in ((takes, "takes"), (returns, "returns")):
        with pytest.raises(TypeError, match=f"{verb} Plain: .* Use a pydantic BaseModel, a dataclass, or plain JSON"):
            app.workflow(workflow)
    assert app.workflows == ()


def test_the_packages_of_an_app_are_those_of_its_code_and_those_that_it_names() -> None:
    owned = App("shop", packages=["payments"]).packages
    assert [owned.own(module) for module in (__name__, "tests.elsewhere", "payments.api")] == [True, True, True]
    assert [owned.own(module) for module in ("os", "durable.client", "payments_of_others", "")] == [False] * 4


def test_retention_is_said_for_each_ending_or_for_all() -> None:
    app = App("shop")

    @app.workflow(retention={"completed": "30 days", "failed": "1 week"})
    async def kept(ctx: Context) -> None: ...

    assert kept.retention == {"completed": 30 * 86_400, "failed": 7 * 86_400}
    wrong: Any
    for wrong, message in (
        ("1s", "at least 60 s"),
        ({"failed": "1s"}, "failed must be at least 60 s"),
        ({"done": "1 day"}, "has done: a run ends as cancelled, completed, dead, failed, timed_out"),
    ):
        with pytest.raises(ValueError, match=message):
            app.workflow(retention=wrong)(kept.fn)
