"""Numbers in log records that CloudWatch makes metrics of (its embedded metric format), so that no request is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMESPACE: Final = "durable"


def counted(at: float, **counts: int) -> Mapping[str, Any]:
    """What a log call takes as `extra`: each count is a metric of this name, by the field `service`, the stack's name."""
    metrics = [{"Name": name, "Unit": "Count"} for name in counts]
    described = {"Namespace": NAMESPACE, "Dimensions": [["service"]], "Metrics": metrics}
    return {"_aws": {"Timestamp": int(at * 1000), "CloudWatchMetrics": [described]}, **counts}
