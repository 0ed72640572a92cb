"""Starts the second emulator; run by the Python of its own environment, with the address in its environment.

Two things differ from a plain start. One-time schedules are looked at every second instead of every ten, and
permissions on a schedule are checked against the group it is in: the emulator takes every group for `default`.
"""

import json
from typing import Any

from ministack import app  # pyright: ignore[reportMissingImports] - in the emulator's environment only
from ministack.core import iam_actions  # pyright: ignore[reportMissingImports]
from ministack.services import scheduler  # pyright: ignore[reportMissingImports]

_TICK_SECONDS = 1

_resource_of = iam_actions.extract_resource_arn


def _resource_in_its_group(service: str, *request: Any) -> str:
    arn: str = _resource_of(service, *request)
    if service != "scheduler":
        return arn
    _method, _path, _headers, body, query, *_ = request
    group = json.loads(body).get("GroupName") if body else query.get("groupName", [None])[0]
    return arn.replace(":schedule/default/", f":schedule/{group or 'default'}/")


iam_actions.extract_resource_arn = _resource_in_its_group
scheduler._SCHEDULE_TICK_INTERVAL = _TICK_SECONDS
app.main()
