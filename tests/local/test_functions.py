"""Functions as child processes: warm, mortal, and stopped when their time is over."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from durable.adapters.clock import SystemClock
from durable.local.functions import LocalFunction
from durable.local.invocation import Died, Raised, Returned, TimedOut
from durable.local.provision import Function

Make = Callable[..., LocalFunction]


@pytest.fixture
def function() -> Iterator[Make]:
    made: list[LocalFunction] = []

    def make(name: str, timeout: int = 20) -> LocalFunction:
        declared = Function(name, f"tests.local.sample_handlers.{name}", {}, timeout, 512)
        local = LocalFunction(declared, environment={}, region="us-east-1", clock=SystemClock(), concurrency=2)
        made.append(local)
        return local

    yield make
    for local in made:
        local.stop()


def test_a_handler_gets_the_event_and_a_context_and_its_prints_are_not_the_answer(function: Make):
    outcome = function("echo").invoke({"text": "grüße\nzwei"})
    assert isinstance(outcome, Returned)
    assert outcome.value["event"] == {"text": "grüße\nzwei"}
    assert outcome.value["function"] == "echo"
    assert 0 < outcome.value["left"] <= 20_000


def test_the_process_stays_warm_between_invocations(function: Make):
    local = function("pid")
    assert local.invoke({}) == local.invoke({})


def test_a_process_that_ends_in_the_middle_has_died_and_the_next_invocation_gets_a_new_one(function: Make):
    local = function("die")
    first, second = local.invoke({}), local.invoke({})
    assert isinstance(first, Died)
    assert first.how == "exit code 3"
    assert isinstance(second, Died)
    assert first.pid != second.pid


def test_a_process_that_was_killed_while_idle_costs_no_invocation(function: Make):
    local = function("pid")
    first = local.invoke({})
    assert isinstance(first, Returned)
    os.kill(first.value, signal.SIGKILL)
    os.waitid(os.P_PID, first.value, os.WEXITED | os.WNOWAIT)
    second = local.invoke({})
    assert isinstance(second, Returned)
    assert second.value != first.value


def test_an_exception_is_reported_and_the_process_lives_on(function: Make):
    outcome = function("fail").invoke({})
    assert isinstance(outcome, Raised)
    assert (outcome.type, outcome.message) == ("ValueError", "no such order")


def test_an_answer_that_is_no_json_is_an_error_of_the_handler(function: Make):
    assert isinstance(function("unserialisable").invoke({}), Raised)


def test_an_invocation_that_takes_too_long_is_killed(function: Make):
    assert isinstance(function("stall", timeout=1).invoke({}), TimedOut)


def test_a_handler_that_cannot_be_imported_is_an_error_of_every_invocation(function: Make):
    outcome = function("not_there").invoke({})
    assert isinstance(outcome, Raised)
    assert "not_there" in outcome.message
