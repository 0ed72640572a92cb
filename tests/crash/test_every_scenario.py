"""Whatever call an invocation dies or stands still at: every scenario workflow ends as it does without trouble."""

import pytest

from tests.crash.recorded import Pace, Recorded
from tests.histories.catalogue import scenarios

KNOWN = [Recorded(one) for one in scenarios() if one.file.exists()]
CASES = [(one, pace) for one in KNOWN for pace in one.paces]


@pytest.mark.parametrize(("recorded", "pace"), CASES, ids=[f"{one.scenario}-{pace}" for one, pace in CASES])
def test_it_ends_as_without_trouble(recorded: Recorded, pace: Pace) -> None:
    recorded.matrix(pace)
