"""Every limit in one place, each with its source."""

from __future__ import annotations

from typing import Final

RUN_ID_BYTES: Final = 128
"""SQS message group ids have at most 128 characters (SQS API reference, SendMessage)."""

NAME_BYTES: Final = 256
"""Workflow, signal, step and tag names; keeps locations and index keys short."""

LOCATION_BYTES: Final = 850
"""A sort key has at most 1,024 bytes (DynamoDB quotas); marks, prefixes and attempt numbers need the rest."""

SORT_KEY_BYTES: Final = 1024
"""Longest sort key (DynamoDB quotas)."""

PAYLOAD_BYTES: Final = 256 * 1024
"""Largest value in an item; larger ones lie in the bucket. An item has at most 400 KB (DynamoDB quotas), and an entry carries more than its value."""

PROGRESS_BYTES: Final = 4 * 1024
"""What a heartbeat may tell: it is written again and again, and a write costs one unit per KB."""

TASK_KEPT_SECONDS: Final = 14 * 86_400.0
"""How long what is known of an attempt at a remote step is kept after its end: a message waits no longer (SQS quotas)."""

BLOB_BYTES: Final = 64 * 1024 * 1024
"""Largest value of all: it has to fit into the function's memory several times over."""

COMPRESS_BYTES: Final = 4 * 1024
"""Larger values are compressed before they are stored: a write costs one unit per KB."""

ITEM_BYTES: Final = 400 * 1024
"""Largest item, names of attributes included (DynamoDB quotas)."""

QUEUE_BYTES: Final = 1024 * 1024
"""Largest queue message (SQS quotas)."""

INLINE_BYTES: Final = 256
"""Inputs, outputs and errors up to this size live in the run record, which stays under 1 KB."""

TAGS: Final = 10
"""Tags of one run."""

ENTRIES: Final = 50_000
"""Entries of a run's history, unless its workflow says otherwise: about 10 MB to read at every cold turn."""

SQS_DELAY_SECONDS: Final = 900
"""Longest DelaySeconds of a standard queue (SQS quotas)."""

WAITS_NAMED: Final = 8
"""Waits that a settled run record names one by one; the others are covered by a digest."""

DEAD_TURNS: Final = 10
"""Turns in a row that may die without a result before a run is given up."""

SLEEP_SECONDS: Final = 10 * 366 * 86_400
"""Longest sleep or timeout: ten years."""

ERROR_MESSAGE_CHARS: Final = 2_000
"""What is kept of an error's message; the rest is cut with a note."""

ERROR_DATA_BYTES: Final = 4 * 1024
"""What is kept of an error's attributes, as JSON; those that do not fit are left out."""

ERROR_CAUSES: Final = 5
"""How far the chain of an error's causes is kept."""

TAG_BYTES: Final = 256
"""All tags of one run together: the run record stays under 1 KB."""

HEADER_BYTES: Final = 512
"""All headers of one run together, names included: they are part of its record and of every message about a step."""
