# pyright: strict
"""Every line marked E is refused by pyright strict and by mypy strict, and no other line. Checked, never run.

Each call stands in a function of its own: after an operation that never returns, checkers stop looking.
"""

from durable import App, Branch, Call, Client, Context, Step, cron
from durable.testing import TestEnvironment
from tests.public_types.shop import (
    APPROVE,
    PROGRESS,
    RENAME,
    SETTLED,
    Approve,
    Cart,
    Order,
    Other,
    Poll,
    Reject,
    app,
    bank,
    by_item,
    charge,
    charge_later,
    fulfil,
    may_forget_return,
    nightly,
    polling,
    print_label,
    quote,
    refund,
    returns_nothing,
    serving,
    stock,
    was_charged,
)

# Steps


async def step_argument_of_another_type(ctx: Context, order: Order) -> None:
    await ctx.step(charge, "order")  # E


async def step_argument_missing(ctx: Context, order: Order) -> None:
    await ctx.step(charge)  # E


async def step_keyword_argument_given_by_position(ctx: Context, order: Order) -> None:
    await ctx.step(charge_later, order, 3)  # E


async def step_keyword_misspelt(ctx: Context, order: Order) -> None:
    await ctx.step("n", charge, order, amout=3)  # E


async def step_method_argument_of_another_type(ctx: Context, order: Order) -> None:
    await ctx.step(Step("n"), bank.pay, "1")  # E


async def step_called_instead_of_passed(ctx: Context, order: Order) -> None:
    await ctx.step(charge(order))  # E


async def step_coroutine_instead_of_function(ctx: Context, order: Order) -> None:
    await ctx.step("n", charge_later(order))  # E


async def step_not_awaited(ctx: Context, order: Order) -> None:
    ctx.step(charge, order)  # E


async def sleep_not_awaited(ctx: Context, order: Order) -> None:
    ctx.sleep(3)  # E


async def send_not_awaited(ctx: Context, order: Order) -> None:
    ctx.mailbox.send("r", APPROVE, {})  # E


async def step_of_a_remote_step(ctx: Context, order: Order) -> None:
    await ctx.step(print_label, order)  # E


async def step_of_a_workflow(ctx: Context, order: Order) -> None:
    await ctx.step(fulfil, order)  # E


async def step_option_among_the_arguments(ctx: Context, order: Order) -> None:
    await ctx.step(charge, order, retries=3)  # E


async def step_with_an_undo_for_another_result(ctx: Context, order: Order) -> None:
    await ctx.step(Step("n").undo(refund), charge_later, order)  # E


async def step_with_a_verify_for_another_result(ctx: Context, order: Order) -> None:
    await ctx.step(Step("n", at_most_once=True).verify(was_charged), charge_later, order)  # E


async def step_kind_that_does_not_exist(ctx: Context, order: Order) -> None:
    await ctx.try_step(Step(catch=["late"]), charge, order)  # E


# Remote steps


async def call_of_a_local_function(ctx: Context, order: Order) -> None:
    await ctx.call(charge, order)  # E


async def call_argument_of_another_type(ctx: Context, order: Order) -> None:
    await ctx.call(print_label, "order")  # E


async def call_argument_missing(ctx: Context, order: Order) -> None:
    await ctx.call(Call(), print_label)  # E


async def call_option_among_the_arguments(ctx: Context, order: Order) -> None:
    await ctx.call(print_label, order, queue="q")  # E


# Loops and branches


async def loop_state_of_another_type(ctx: Context, order: Order) -> None:
    await ctx.loop("l", polling, state="x")  # E


async def loop_state_missing(ctx: Context, order: Order) -> None:
    await ctx.loop("l", polling)  # E


async def loop_body_with_state_returns_nothing(ctx: Context, order: Order) -> None:
    await ctx.loop("l", returns_nothing, state=Poll(0))  # E


async def loop_body_may_forget_its_return(ctx: Context, order: Order) -> None:
    await ctx.loop("l", may_forget_return)  # E


async def branch_argument_missing(ctx: Context, order: Order) -> None:
    await ctx.join("j", Branch("a", quote, order))  # E


async def branch_argument_of_another_type(ctx: Context, order: Order) -> None:
    await ctx.join("j", Branch("b", stock, 3))  # E


async def join_of_coroutines(ctx: Context, order: Order) -> None:
    await ctx.join("j", quote(ctx, order, "x"), stock(ctx, "s"))  # E


async def join_of_a_dict_of_coroutines(ctx: Context, order: Order) -> None:
    await ctx.join("j", {"a": ctx.step(charge, order)})  # E


async def race_settled_by_an_unknown_rule(ctx: Context, order: Order) -> None:
    await ctx.race("r", Branch("a", stock, "s"), settle="last")  # E


async def map_item_of_another_type(ctx: Context, order: Order) -> None:
    await ctx.map("m", [1], by_item)  # E


# Messages and state


async def signal_type_is_no_type(ctx: Context, order: Order) -> None:
    await ctx.wait_for_signal("n", 3)  # E


async def signal_default_without_timeout(ctx: Context, order: Order) -> None:
    await ctx.wait_for_signal(APPROVE, default=None)  # E


async def signal_type_missing(ctx: Context, order: Order) -> None:
    await ctx.mailbox.next("approve")  # E


async def batch_size_missing(ctx: Context, order: Order) -> None:
    await ctx.mailbox.next_batch(APPROVE)  # E


async def sent_body_of_another_type(ctx: Context, order: Order) -> None:
    await ctx.mailbox.send("r", APPROVE, Reject(why=""))  # E


async def response_of_another_type(ctx: Context, order: Order) -> None:
    request = await ctx.updates.next(RENAME)
    request.respond("three")  # E


async def state_of_another_type(ctx: Context, order: Order) -> None:
    ctx.set_state(PROGRESS, "half")  # E


# Other runs


async def child_input_of_another_type(ctx: Context, order: Order) -> None:
    await ctx.child(fulfil, "order")  # E


async def child_input_missing(ctx: Context, order: Order) -> None:
    await ctx.child(fulfil)  # E


async def child_takes_no_input(ctx: Context, order: Order) -> None:
    await ctx.child(nightly, order)  # E


async def successor_input_of_another_type(ctx: Context, order: Order) -> None:
    await ctx.continue_as_new(fulfil, "x")  # E


async def workflow_called(ctx: Context, order: Order) -> None:
    await fulfil(ctx, order)  # E


async def entity_argument_of_another_type(ctx: Context, order: Order) -> None:
    await ctx.entity(Cart, "c").call(Cart.add, 3)  # E


async def entity_operation_of_another_class(ctx: Context, order: Order) -> None:
    await ctx.entity(Cart, "c").call(Other.operate, 3)  # E


async def entity_signal_with_another_argument(ctx: Context, order: Order) -> None:
    await ctx.entity(Cart, "c").signal(Cart.check_out, 3)  # E


async def entity_call_forgotten(ctx: Context, order: Order) -> None:
    ctx.entity(Cart, "c").call(Cart.clear)  # E


# Callers


def start_input_of_another_type(client: Client, order: Order) -> None:
    client.start(fulfil, "order")  # E


def start_input_missing(client: Client, order: Order) -> None:
    client.start(fulfil)  # E


def start_takes_no_input(client: Client, order: Order) -> None:
    client.start(nightly, order)  # E


def start_takes_one_input(client: Client, order: Order) -> None:
    client.start(fulfil, order, order)  # E


def client_sends_another_type(client: Client, order: Order) -> None:
    client.send("r", APPROVE, Reject(why=""))  # E


def handle_sends_another_type(client: Client, order: Order) -> None:
    client.handle(fulfil, "r").send(APPROVE, Reject(why=""))  # E


def update_argument_of_another_type(client: Client, order: Order) -> None:
    client.update("r", RENAME, 3)  # E


def entity_argument_missing(client: Client, order: Order) -> None:
    client.entity(Cart, "c").call(Cart.add)  # E


def entity_signal_of_another_class(client: Client, order: Order) -> None:
    client.entity(Cart, "c").signal(Other.operate, 3)  # E


def start_with_a_message_of_another_type(client: Client, order: Order) -> None:
    client.start_with_message(fulfil, order, APPROVE, 3, id="o1")  # E


def start_with_a_message_and_another_input(client: Client, order: Order) -> None:
    client.start_with_message(fulfil, "o1", APPROVE, Approve(by="me"), id="o1")  # E


def cancel_mode_that_does_not_exist(client: Client, order: Order) -> None:
    client.cancel("r", "kindly")  # E


def listing_of_an_unknown_status(client: Client, order: Order) -> None:
    client.list(status="running")  # E


# Registration


def schedule_without_the_input(order: Order) -> None:
    app.schedule("n", cron(""), fulfil)  # E


def schedule_with_an_input_too_many(order: Order) -> None:
    app.schedule("n", cron(""), nightly, order)  # E


def event_for_a_workflow_without_input(order: Order) -> None:
    app.on_event(SETTLED, nightly)  # E


def services_are_typed() -> str:
    return serving.services.rate  # E


@app.workflow  # E
def a_sync_workflow(ctx: Context, order: Order) -> int:
    return 1


@app.workflow  # E
async def two_inputs(ctx: Context, a: int, b: int) -> int:
    return 1


@app.workflow  # E
async def no_context(order: Order) -> int:
    return 1


@fulfil.validator(RENAME)  # E
def takes_another_type(name: int) -> None: ...


def app_without_a_name() -> None:
    App()  # E


def mock_of_another_type() -> None:
    with TestEnvironment(app) as env:
        env.mock(charge).returns(3)  # E
        env.mock(print_label).returns("x")  # E
