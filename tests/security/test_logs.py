"""Payloads stay out of the logs: whatever a run is given, records, sends and answers, and whichever way it goes wrong."""

import logging
from collections.abc import Iterator

import pytest
from moto import mock_aws

from tests.security.deployed import Deployed
from tests.security.story import SECRET, tell

pytestmark = pytest.mark.moto


@pytest.fixture(scope="module")
def place() -> Iterator[Deployed]:
    with mock_aws():
        yield Deployed("logs")


def test_sec_07_nothing_that_a_run_carries_is_logged_at_any_level(
    place: Deployed, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, logger="durable")
    caplog.set_level(logging.INFO)
    tell(place)
    own = [record for record in caplog.records if record.name.startswith("durable")]
    assert own, "it does log something"
    formatter = logging.Formatter("%(message)s")
    assert [text for record in own if SECRET in (text := formatter.format(record) + str(vars(record)))] == []
    assert [record.getMessage() for record in caplog.records if SECRET in record.getMessage()] == []
    printed = capfd.readouterr()
    assert SECRET not in printed.out + printed.err


def test_sec_07_refusals_do_not_repeat_what_was_sent(place: Deployed, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="durable")
    place.request("POST", "/runs", {"workflow": "order", "id": "bad", "input": {"id": [SECRET]}})
    place.request("POST", f"/hooks/{SECRET}", {"said": SECRET})
    place.request("POST", f"/callbacks/{SECRET}/complete", {"result": SECRET})
    place.request("POST", f"/tasks/{SECRET}/complete", {"result": SECRET})
    assert SECRET not in caplog.text


def test_the_marker_is_in_what_is_stored_and_so_it_would_have_been_found(place: Deployed) -> None:
    items = place.admin.dynamodb.scan(TableName=place.settings.table)["Items"]
    assert SECRET in str(items)
