"""The maintenance function: what it tells, and the metric that an alarm of the template watches."""

import io
import json
import logging
from pathlib import Path

from durable.local.template import read_template
from durable.settings import Settings
from handlers.logs import install
from handlers.metrics import NAMESPACE, counted

TEMPLATE = Path(__file__).parents[2] / "template.yaml"


def test_a_count_is_logged_as_the_metric_that_the_alarm_watches() -> None:
    stream = io.StringIO()
    settings = Settings(
        app="m:a", table="t", runs_queue_url="u", runs_queue_arn="a", timers_queue_url="u", schedule_group="g",
        schedule_role_arn="r", service="my-stack",
    )  # fmt: skip
    root = logging.getLogger()
    level = root.level
    handler = install(settings, stream)
    try:
        logging.getLogger("durable").warning("three", extra=counted(1.5, OverdueRuns=3))
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    line = json.loads(stream.getvalue())
    assert (line["OverdueRuns"], line["service"], line["_aws"]["Timestamp"]) == (3, "my-stack", 1500)
    [described] = line["_aws"]["CloudWatchMetrics"]
    alarm = read_template(TEMPLATE, {}, region="eu-central-1").of_type("AWS::CloudWatch::Alarm")["OverdueRunsAlarm"]
    assert (alarm["Namespace"], alarm["MetricName"]) == (NAMESPACE, described["Metrics"][0]["Name"])
    assert [[dimension["Name"] for dimension in alarm["Dimensions"]]] == described["Dimensions"]
