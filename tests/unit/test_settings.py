"""The environment of a function as a frozen model."""

import pytest

from durable.errors import InvalidInput
from durable.settings import Settings

ENVIRONMENT = {
    "DURABLE_APP": "examples.orders.app:app",
    "DURABLE_TABLE": "table",
    "DURABLE_RUNS_QUEUE_URL": "https://sqs/runs.fifo",
    "DURABLE_RUNS_QUEUE_ARN": "arn:aws:sqs:eu-central-1:1:runs.fifo",
    "DURABLE_TIMERS_QUEUE_URL": "https://sqs/timers",
    "DURABLE_SCHEDULE_GROUP": "timers",
    "DURABLE_SCHEDULE_ROLE_ARN": "arn:aws:iam::1:role/schedules",
    "PATH": "/bin",
}


def read(**changes: str) -> Settings:
    return Settings.from_environment({**ENVIRONMENT, **changes})


def test_defaults_hold_for_what_is_not_set() -> None:
    settings = read()
    assert (settings.table, settings.timers_threshold, settings.index_shards) == ("table", 900, 4)
    assert settings.code_version is None


def test_numbers_are_read_from_text() -> None:
    settings = read(DURABLE_TIMERS_THRESHOLD="5", DURABLE_INDEX_SHARDS="16")
    assert (settings.timers_threshold, settings.index_shards) == (5, 16)


def test_the_code_version_is_what_the_deployment_says_or_nothing() -> None:
    assert read(AWS_LAMBDA_FUNCTION_VERSION="$LATEST").code_version is None
    assert read(DURABLE_CODE_VERSION="abc").code_version == "abc"


def test_everything_that_is_missing_or_wrong_is_named_at_once() -> None:
    with pytest.raises(InvalidInput) as raised:
        Settings.from_environment({"DURABLE_APP": "app", "DURABLE_TIMERS_THRESHOLD": "901"})
    message = str(raised.value)
    names = ("DURABLE_APP", "DURABLE_TABLE", "DURABLE_RUNS_QUEUE_URL", "DURABLE_TIMERS_THRESHOLD")
    assert all(name in message for name in names)


def test_an_empty_variable_is_missing() -> None:
    with pytest.raises(InvalidInput, match="DURABLE_TABLE"):
        read(DURABLE_TABLE="")


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        read().__setattr__("table", "other")
