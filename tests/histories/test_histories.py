"""What older versions of the framework have recorded still replays; every scenario workflow has a history."""

import pytest

from durable.testing import assert_replays
from tests.histories.catalogue import HERE, Scenario, scenarios, without_history

RECORD = "Run `python -m tests.histories.record` and check in what it writes."
KNOWN = list(scenarios())


@pytest.mark.parametrize("scenario", [one for one in KNOWN if one.file.exists()], ids=str)
def test_a_recorded_history_still_replays(scenario: Scenario) -> None:
    assert_replays(scenario.file, scenario.app)


def test_every_scenario_workflow_has_a_history() -> None:
    exempt = without_history()
    missing = [str(one) for one in KNOWN if not one.file.exists() and str(one) not in exempt]
    assert not missing, f"no recorded history of: {', '.join(missing)}. {RECORD}"


def test_every_history_belongs_to_a_scenario() -> None:
    left = {path.relative_to(HERE) for path in HERE.rglob("*.json")} - {one.file.relative_to(HERE) for one in KNOWN}
    assert not left, "these histories are replayed by no test: their workflow was renamed or removed"


def test_what_has_no_history_has_a_reason_and_exists() -> None:
    exempt = without_history()
    assert all(exempt.values())
    assert exempt.keys() <= {str(one) for one in KNOWN if not one.file.exists()}
