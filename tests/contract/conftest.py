"""Each contract test runs on every adapter."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from moto import mock_aws

from durable.aws import Clients, make_clients
from durable.ports import Store
from tests.contract.worlds import MemoryWorld, MotoWorld, World

ADAPTERS = ["memory", pytest.param("moto", marks=pytest.mark.moto)]


@pytest.fixture(scope="module")
def moto() -> Iterator[Clients]:
    """One emulator a module; it is not thread-safe, so tests that use threads stay away from it."""
    with mock_aws():
        yield make_clients()


@pytest.fixture(scope="module")
def new_moto_world(moto: Clients) -> Callable[[], MotoWorld]:
    numbers = count()
    return lambda: MotoWorld(moto, stack=f"contract-{next(numbers)}")


@pytest.fixture(scope="module")
def moto_world(new_moto_world: Callable[[], MotoWorld]) -> MotoWorld:
    return new_moto_world()


@pytest.fixture(params=ADAPTERS)
def world(request: pytest.FixtureRequest) -> World:
    """A world of its own."""
    if request.param == "memory":
        return MemoryWorld()
    return request.getfixturevalue("new_moto_world")()


@pytest.fixture(params=ADAPTERS)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty store whose pages hold three items, so that every load is several reads."""
    if request.param == "memory":
        yield MemoryWorld().store
        return
    world: MotoWorld = request.getfixturevalue("moto_world")
    yield world.store
    world.clear_table()
