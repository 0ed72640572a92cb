"""Carriers of an app: what they capture, and how they are entered around bodies of steps."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from durable.errors import InvalidName, LimitExceeded
from durable.propagation import Carriers

HEADERS = {"tenant": "acme"}


class Recorder:
    """A carrier that notes when it is entered and left."""

    def __init__(self, name: str = "a", captured: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.captured = captured or {}
        self.events: list[str] = []

    def capture(self) -> Mapping[str, str]:
        return self.captured

    @contextmanager
    def restore(self, headers: Mapping[str, str]) -> Generator[None]:
        self.events.append(f"{self.name} enters with {headers['tenant']}")
        try:
            yield
        finally:
            self.events.append(f"{self.name} leaves")

    def body(self) -> str:
        self.events.append("body")
        return "done"

    async def async_body(self) -> str:
        await asyncio.sleep(0)
        return self.body()

    def fails(self) -> None:
        raise ValueError(self.name)


def carriers(*those: Any) -> Carriers:
    found = Carriers()
    for one in those:
        found.add(one)
    return found


ENTERED = ["a enters with acme", "body", "a leaves"]


def test_headers_that_are_given_are_taken_as_they_are() -> None:
    assert carriers(Recorder(captured={"a": "1"})).headers({"b": "2"}) == {"b": "2"}
    assert carriers(Recorder(captured={"a": "1"})).headers({}) == {}


def test_without_them_every_carrier_is_asked() -> None:
    assert carriers().headers(None) == {}
    both = carriers(Recorder(captured={"a": "1", "b": "1"}), Recorder(captured={"b": "2"}))
    assert both.headers(None) == {"a": "1", "b": "2"}


def test_what_is_captured_is_checked_too() -> None:
    with pytest.raises(InvalidName):
        carriers(Recorder(captured={"Tenant": "acme"})).headers(None)
    with pytest.raises(LimitExceeded, match="512"):
        carriers(Recorder(captured={"a": "x" * 300}), Recorder(captured={"b": "x" * 300})).headers(None)


def test_a_sync_body_runs_inside() -> None:
    recorder = Recorder()
    assert carriers(recorder).around(HEADERS, partial(recorder.body))() == "done"
    assert recorder.events == ENTERED


def test_an_async_body_runs_inside_where_it_is_awaited() -> None:
    recorder = Recorder()
    awaitable = carriers(recorder).around(HEADERS, partial(recorder.async_body))()
    assert recorder.events == []
    assert asyncio.run(awaitable) == "done"
    assert recorder.events == ENTERED


def test_a_sync_function_that_gives_an_awaitable_is_covered_in_both_parts() -> None:
    recorder = Recorder()
    awaitable = carriers(recorder).around(HEADERS, lambda: recorder.async_body())()  # noqa: PLW0108 - is no coroutine function
    assert recorder.events == ["a enters with acme", "a leaves"]
    assert asyncio.run(awaitable) == "done"
    assert recorder.events[2:] == ENTERED


def test_the_first_to_be_registered_is_the_outermost() -> None:
    outer, inner = Recorder("outer"), Recorder("inner")
    inner.events = outer.events
    carriers(outer, inner).around(HEADERS, outer.body)()
    assert [event.partition(" ")[0] for event in outer.events] == ["outer", "inner", "body", "inner", "outer"]


def test_the_error_of_a_body_passes_through_and_leaves_nothing_entered() -> None:
    recorder = Recorder()
    with pytest.raises(ValueError, match="a"):
        carriers(recorder).around(HEADERS, recorder.fails)()
    assert recorder.events == ["a enters with acme", "a leaves"]


def test_a_carrier_that_cannot_restore_fails_the_attempt_and_those_before_it_are_left() -> None:
    outer, broken = Recorder("outer"), Recorder("broken")
    with pytest.raises(KeyError):
        carriers(outer, broken).around({}, outer.body)()
    both = carriers(outer, FailingCarrier())
    outer.events.clear()
    with pytest.raises(RuntimeError, match="no tracer"):
        both.around(HEADERS, outer.body)()
    assert outer.events == ["outer enters with acme", "outer leaves"]


class FailingCarrier:
    def capture(self) -> Mapping[str, str]:
        return {}

    def restore(self, headers: Mapping[str, str]) -> Any:
        raise RuntimeError("no tracer")


def test_without_carriers_a_body_is_left_alone() -> None:
    body = Recorder().body
    assert carriers().around(HEADERS, body) is body
