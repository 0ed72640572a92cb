"""`world(app)` deploys an app with virtual time, in memory; tests that ask for `anywhere` also run on emulated AWS."""

from collections.abc import Callable
from typing import Any

import pytest

from durable import App
from durable.testing import TestEnvironment

World = Callable[[App[Any]], TestEnvironment]


@pytest.fixture
def world() -> World:
    return TestEnvironment
