"""Tags of a run: how many, how long, and which characters."""

from __future__ import annotations

from collections.abc import Iterable

from durable.errors import InvalidName, LimitExceeded
from durable.model.ids import check_name
from durable.model.limits import TAG_BYTES, TAGS


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """The tags without repetitions, in their order; refuses too many, too long ones and odd characters."""
    if isinstance(tags, str):
        raise InvalidName("tags", tags, f'a list of texts, for example ["{tags}"]')
    kept = tuple(dict.fromkeys(check_name("tag", tag) for tag in tags))
    if len(kept) > TAGS:
        raise LimitExceeded("the list of tags", len(kept), TAGS, unit="tags")
    size = sum(len(tag.encode()) for tag in kept)
    if size > TAG_BYTES:
        raise LimitExceeded("the text of all tags", size, TAG_BYTES)
    return kept
