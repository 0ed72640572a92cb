"""Every method of every port on AWS, with every way to fail, at every request that it makes.

What fails less often than botocore tries again is not noticed. What fails more often is `StoreUnavailable`, never an
error of the SDK; and whoever then repeats the call finds the answer, and leaves the world, of a call that nothing disturbed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any

import pytest
from moto import mock_aws

from durable.aws import make_clients
from durable.errors import StoreUnavailable
from durable.model.run import Run
from durable.ports import Ports, Signing, TaskSource
from durable.testing.interception import CALL_NAMES, methods_of
from tests.adapters import more_scenes
from tests.adapters.botocore_faults import Fault
from tests.adapters.faults_of_aws import FAULTS
from tests.adapters.places import SERVICES, Place
from tests.adapters.scenes import SCENES
from tests.contract.worlds import moto_world

pytestmark = pytest.mark.moto

assert more_scenes.SCENES is SCENES

METHODS = {
    *CALL_NAMES,
    *(f"signing.{name}" for name in methods_of(Signing)),
    *(f"source.{name}" for name in methods_of(TaskSource)),
}

ASK_NOBODY = {"clock", "new_id", "public_url", "texts"}

WAKES_AGAIN = {"store.announce", "store.request_cancel", "store.watch"}
"""They add one to `wakes`; adding more makes a turn look once more and changes nothing."""

SEEN_BEFORE = {"store.put_message"}
"""Their answer says whether this call was the first, and a repetition is not."""

BRIEFLY = {"throttled", "cut off afterwards", "half written, reply lost", "transaction in conflict"}
"""What a request meets that is like one before it: there is less that could be new."""

ALIKE = (
    "away", "not reached", "not reached in time", "no answer in time, nothing done", "cut off before",
    "throttled for the account",
)  # fmt: skip
"""Nothing has happened and botocore tries again, as for "broken". Each request meets one of them; once is not tried."""

SLOW = {"store.record_cut, with more tombstones than a transaction takes"}
"""The emulator copies its tables for each transaction."""


@dataclass(frozen=True)
class Outcome:
    answer: Any
    left: Any


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with mock_aws():
        yield Place(moto_world(make_clients(), stack="faults"))


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Botocore waits for up to two seconds before it tries again, by the wall clock."""
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None))


def test_every_method_of_every_port_has_a_scene() -> None:
    assert {method_of(name) for name in SCENES} == METHODS
    assert {field.name for field in fields(Ports)} - ASK_NOBODY <= SERVICES.keys()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SCENES]
)
def test_a_fault_is_overcome_or_told_and_leaves_nothing_behind(name: str, place: Place) -> None:
    for service in SERVICES[name.partition(".")[0]]:
        calls, undisturbed = play(name, service, place)
        for call, operation in enumerate(calls):
            briefly = name in SLOW or operation in calls[:call]
            like_any = ALIKE[(list(SCENES).index(name) + call) % len(ALIKE)]
            for fault in FAULTS[service]:
                met = fault.name in BRIEFLY or (not briefly and (fault.name == like_any or fault.name not in ALIKE))
                if met and fault.applies_to(operation):
                    check(name, service, place, fault, call, undisturbed)


def test_every_fault_happens_to_some_request(place: Place) -> None:
    met: dict[str, set[str]] = {service: set() for service in FAULTS}
    for name in SCENES:
        for service in SERVICES[name.partition(".")[0]]:
            met[service] |= set(play(name, service, place)[0])
    missed = [
        str(fault)
        for service, faults in FAULTS.items()
        for fault in faults
        if not any(fault.applies_to(operation) for operation in met[service])
    ]
    assert missed == []


def play(name: str, service: str, place: Place) -> tuple[list[str], Outcome]:
    """The call when nothing goes wrong, and the requests that it makes to a service."""
    act = place.arranged(name)
    adapter, line = place.on_a_line(name.partition(".")[0], service)
    return line.calls, outcome(name, place, act(adapter))


def check(name: str, service: str, place: Place, fault: Fault, call: int, undisturbed: Outcome) -> None:
    happening = f"{fault} at request {call}"
    for attempts in {fault.attempts} if fault.name in ALIKE else {1, fault.attempts}:
        act = place.arranged(name)
        adapter, line = place.on_a_line(name.partition(".")[0], service)
        line.fail(fault, call=call, attempts=attempts)
        try:
            answer = act(adapter)
        except StoreUnavailable:
            assert attempts == fault.attempts, f"{happening} is told, though a second try would have done"
            line.mend()
            answer = act(adapter)
        else:
            assert attempts < fault.attempts, f"{happening} went unnoticed"
        assert len(line.happened) == attempts, happening
        assert outcome(name, place, answer) == undisturbed, happening


def outcome(name: str, place: Place, answer: Any) -> Outcome:
    method = method_of(name)
    left = place.left(name.partition(".")[0])
    if method in WAKES_AGAIN:
        answer = replace(answer, wakes=1) if isinstance(answer, Run) else answer
        left = [{**item, "wakes": "some"} if item.get("wakes", {"N": "0"}) != {"N": "0"} else item for item in left]
    if method in SEEN_BEFORE:
        answer = None
    if method == "source.receive":  # each delivery has a handle of its own, and is counted
        answer = [delivery.body for delivery in answer]
    return Outcome(answer, left)


def method_of(name: str) -> str:
    return name.partition(",")[0]
