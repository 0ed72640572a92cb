"""What the cases need of the project around them: the template, and a deployment whose table and queue are emulated."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from durable import App
from durable.aws import make_clients
from durable.local.template import Template, read_template
from durable.testing import TestEnvironment
from tests.contract.worlds import AwsWorld, moto_world
from tests.scenarios.emulated import emulated

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def template() -> Template:
    """As CloudFormation would deploy it with its defaults."""
    return read_template(ROOT / "template.yaml", {}, region="eu-central-1")


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsWorld]:
    with mock_aws():
        yield moto_world(make_clients(), stack="cases")


@pytest.fixture
def on_aws(aws: AwsWorld) -> Callable[[App[Any]], TestEnvironment]:
    return lambda app: TestEnvironment(app, services=emulated(aws))
