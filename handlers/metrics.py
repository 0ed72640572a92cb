"""Numbers in log records that CloudWatch makes metrics of (its embedded metric format), so that no request is needed.

Whoever counts something logs it with `extra={"counts": {"Name": 1}}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMESPACE: Final = "durable"


def counted(at: float, counts: Mapping[str, int]) -> Mapping[str, Any]:
    """What a record has in place of its `counts`: metrics of these names, by the field `service`, which is the stack."""
    metrics = [{"Name": name, "Unit": "Count"} for name in counts]
    described = {"Namespace": NAMESPACE, "Dimensions": [["service"]], "Metrics": metrics}
    return {"_aws": {"Timestamp": int(at * 1000), "CloudWatchMetrics": [described]}, **counts}
