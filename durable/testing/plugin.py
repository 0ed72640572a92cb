"""The pytest plugin: the fixture `durable_env`, which also tells of workflow code that cannot be replayed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from durable.app import App
    from durable.testing.environment import TestEnvironment

NewEnvironment = Callable[..., "TestEnvironment"]
"""What the fixture is: `durable_env(app)`; options are those of TestEnvironment, and `check=False`."""

_passed = pytest.StashKey[bool]()


@pytest.fixture
def durable_env(request: pytest.FixtureRequest) -> Iterator[NewEnvironment]:
    """`durable_env(app)` gives a TestEnvironment for the app.

    A workflow that reads a real clock, draws real random numbers, blocks, or talks to the network fails the test with a
    message that says where and what to do. `check=False` leaves out the look at the source.
    """
    from durable.testing.environment import TestEnvironment  # noqa: PLC0415 - only where a test uses the fixture
    from durable.testing.scanning import findings_in  # noqa: PLC0415 - as above
    from durable.testing.watching import watch  # noqa: PLC0415 - as above

    def new(app: App[Any], /, *, check: bool = True, **options: Any) -> TestEnvironment:
        if check and (findings := findings_in(app)):
            pytest.fail("\n".join(map(str, findings)), pytrace=False)
        return TestEnvironment(app, **options)

    watch().take()
    yield new
    caught = watch().take()
    if caught and request.node.stash.get(_passed, False):
        pytest.fail("\n".join(dict.fromkeys(caught)), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes whether the test itself has passed: only then has a misuse been overlooked."""
    report = yield
    if call.when == "call":
        item.stash[_passed] = report.passed
    return report
