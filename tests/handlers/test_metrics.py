"""Counts in log records are the metrics that alarms of the template watch."""

import io
import json
import logging
from pathlib import Path

import pytest

from durable.engine.attention import COUNTED
from durable.local.template import read_template
from durable.settings import Settings
from handlers.logs import install
from handlers.metrics import NAMESPACE

TEMPLATE = Path(__file__).parents[2] / "template.yaml"


@pytest.mark.parametrize(
    ("metric", "alarm"),
    [("OverdueRuns", "OverdueRunsAlarm"), (COUNTED["blocked"], "BlockedRunsAlarm"), (COUNTED["dead"], "DeadRunsAlarm")],
)
def test_a_count_is_logged_as_the_metric_that_an_alarm_watches(metric: str, alarm: str) -> None:
    stream = io.StringIO()
    settings = Settings(
        app="m:a", table="t", runs_queue_url="u", runs_queue_arn="a", timers_queue_url="u", schedule_group="g",
        schedule_role_arn="r", service="my-stack",
    )  # fmt: skip
    root = logging.getLogger()
    level = root.level
    handler = install(settings, stream)
    try:
        logging.getLogger("durable").warning("three", extra={"counts": {metric: 3}})
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    line = json.loads(stream.getvalue())
    assert (line[metric], line["service"]) == (3, "my-stack")
    assert "counts" not in line
    [described] = line["_aws"]["CloudWatchMetrics"]
    watching = read_template(TEMPLATE, {}, region="eu-central-1").of_type("AWS::CloudWatch::Alarm")[alarm]
    assert (watching["Namespace"], watching["MetricName"]) == (NAMESPACE, described["Metrics"][0]["Name"])
    assert [[dimension["Name"] for dimension in watching["Dimensions"]]] == described["Dimensions"]
