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


def test_queues_of_their_own_are_a_json_object() -> None:
    assert read(DURABLE_STEPS_QUEUES='{"gpu": "https://sqs/gpu"}').steps_queues == {"gpu": "https://sqs/gpu"}
    assert read().steps_queues == {}


@pytest.mark.parametrize("text", ["gpu", "[]", '{"gpu": 1}', '"gpu"', '{"gpu": ""}'])
def test_a_wrong_object_of_queues_is_named(text: str) -> None:
    with pytest.raises(InvalidInput, match="DURABLE_STEPS_QUEUES"):
        read(DURABLE_STEPS_QUEUES=text)


def test_a_secret_is_not_shown() -> None:
    settings = read(DURABLE_TOKEN_SECRET="s" * 32)
    assert "sss" not in repr(settings)


@pytest.mark.parametrize("url", ["example.com", "ftp://example.com", "https://example.com/?a=b"])
def test_a_public_address_is_one_of_http(url: str) -> None:
    with pytest.raises(InvalidInput, match="DURABLE_PUBLIC_URL"):
        read(DURABLE_PUBLIC_URL=url)


def test_what_powertools_goes_by_holds_for_our_log_too() -> None:
    settings = read(POWERTOOLS_SERVICE_NAME="shop", POWERTOOLS_LOG_LEVEL="warning", DURABLE_LOG_FORMAT="text")
    assert (settings.service, settings.log_level, settings.log_format) == ("shop", "WARNING", "text")
    assert (read().service, read(POWERTOOLS_SERVICE_NAME="").log_level, read().log_format) == (
        "durable",
        "INFO",
        "json",
    )


def test_a_variable_of_powertools_is_named_as_such() -> None:
    with pytest.raises(InvalidInput, match="POWERTOOLS_LOG_LEVEL: Input should be"):
        read(POWERTOOLS_LOG_LEVEL="loud")
