"""Each contract test runs on every adapter; on AWS's, over two emulators that know nothing of each other."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from moto import mock_aws

from durable.aws import Clients, make_clients
from durable.ports import Store
from tests.contract.worlds import AwsWorld, MemoryWorld, World, ministack_world, moto_world
from tests.e2e.deployment import running_emulator

ADAPTERS = [
    "memory",
    pytest.param("moto", marks=pytest.mark.moto),
    pytest.param("ministack", marks=pytest.mark.e2e),
]
NUMBERS = count()

NewWorld = Callable[[], AwsWorld]


@pytest.fixture(scope="module")
def moto() -> Iterator[NewWorld]:
    """Not thread-safe, so tests that use threads stay away from it."""
    with mock_aws():
        clients = make_clients()
        yield lambda: moto_world(clients, stack=f"contract-{next(NUMBERS)}")


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewWorld]:
    with running_emulator(tmp_path_factory.mktemp("ministack")) as emulator:

        def client(service: str) -> Any:
            return emulator.client(service)

        clients = Clients(
            dynamodb=client("dynamodb"),
            sqs=client("sqs"),
            scheduler=client("scheduler"),
            make_s3=lambda: client("s3"),
            make_secrets=lambda: client("secretsmanager"),
        )
        yield lambda: ministack_world(clients, stack=f"contract-{next(NUMBERS)}")


@pytest.fixture(scope="module")
def moto_tables(moto: NewWorld) -> AwsWorld:
    return moto()


@pytest.fixture(scope="session")
def ministack_tables(ministack: NewWorld) -> AwsWorld:
    return ministack()


@pytest.fixture(params=ADAPTERS)
def world(request: pytest.FixtureRequest) -> World:
    """A world of its own."""
    return MemoryWorld() if request.param == "memory" else request.getfixturevalue(request.param)()


@pytest.fixture(params=ADAPTERS)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty store whose pages hold three items, so that every load is several reads."""
    if request.param == "memory":
        yield MemoryWorld().store
        return
    world: AwsWorld = request.getfixturevalue(f"{request.param}_tables")
    world.clear_table()
    yield world.store
