"""`world(app)` deploys an app with virtual time: in memory, and for the files named here on emulated AWS too."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from moto import mock_aws

from durable import App
from durable.adapters.memory import MemoryBlobs, MemoryStore
from durable.aws import make_clients
from durable.testing import TestEnvironment
from tests.contract.worlds import AwsWorld, moto_world
from tests.scenarios.emulated import emulated

World = Callable[[App[Any]], TestEnvironment]
Stored = Callable[[TestEnvironment], list[str]]

ON_AWS_TOO = {
    "test_at_most_once",
    "test_attributes_and_tags",
    "test_breakpoints",
    "test_callbacks",
    "test_changed_code",
    "test_children",
    "test_continue_as_new",
    "test_duplicate_messages",
    "test_headers",
    "test_entities",
    "test_events",
    "test_join",
    "test_large_values",
    "test_loop",
    "test_lost_wakes",
    "test_message_and_deadline",
    "test_message_before_the_wait",
    "test_message_satisfies_one_wait",
    "test_message_to_nobody",
    "test_next_any_and_batch",
    "test_offload",
    "test_on_event",
    "test_published_state",
    "test_race",
    "test_remote_steps",
    "test_remote_steps_limited",
    "test_remote_steps_lost",
    "test_retention",
    "test_retrying",
    "test_reviews",
    "test_singletons",
    "test_sleep_of_nothing",
    "test_start",
    "test_start_with_message",
    "test_step_that_kills_its_process",
    "test_streams",
    "test_terminate",
    "test_updates",
    "test_user_errors",
    "test_values",
    "test_webhooks",
}
"""What stores, queues and records in many ways; the emulator costs a hundred times what memory does."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "world" not in metafunc.fixturenames:
        return
    places: list[Any] = ["memory"]
    if metafunc.definition.path.stem in ON_AWS_TOO:
        places.append(pytest.param("moto", marks=pytest.mark.moto))
    metafunc.parametrize("world", places, indirect=True)


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsWorld]:
    """One table for the tests of a file, emptied by each. No longer: moto replaces credentials while it is on."""
    with mock_aws():
        yield moto_world(make_clients(), stack="scenarios")


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Afterwards: where nothing was made to go wrong, nothing has needed maintenance."""
    deployed: list[TestEnvironment] = []

    def deploy(app: App[Any]) -> TestEnvironment:
        services = None if request.param == "memory" else emulated(request.getfixturevalue("aws"))
        deployed.append(TestEnvironment(app, services=services))
        return deployed[-1]

    yield deploy
    assert [env.repairs for env in deployed if not env.faults.used and env.repairs] == []


@pytest.fixture
def stored(request: pytest.FixtureRequest) -> Stored:
    """All that is in the table and the bucket, one thing a line: for whoever looks for traces."""

    def lines(env: TestEnvironment) -> list[str]:
        store, blobs = env.world.services.store, env.world.services.blobs
        if isinstance(store, MemoryStore):
            assert isinstance(blobs, MemoryBlobs)
            return [*store.everything, *blobs.keys]
        aws: AwsWorld = request.getfixturevalue("aws")
        items = aws.clients.dynamodb.scan(TableName=aws.settings.table)["Items"]
        objects = aws.clients.make_s3().list_objects_v2(Bucket=str(aws.settings.bucket)).get("Contents", [])
        return [*map(str, items), *(str(found.get("Key")) for found in objects)]

    return lines
