"""Stores what the workflow has announced: published values, tags, attributes, chunks, and its open reviews.

It comes before every item of the history, so whatever a recorded result has led to can be seen by others.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, assert_never

from durable.model.attributes import check_attributes
from durable.model.review import STATE_PREFIX, open_list, opened_from
from durable.model.tags import check_tags
from durable.ops.state import AttributeValues, Chunk, Tags, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from durable.engine.streaming import Streams
    from durable.model.attributes import AttributeValue
    from durable.model.run import Run
    from durable.ops.review import ReviewOperation
    from durable.ops.state import Announcement
    from durable.ports import Ports

STARTED_WITH: Final = "_tags"
"""Attribute: how many of the run's tags it was started with, so that `ctx.run.tags` is the same on every replay."""

REVIEWS: Final = "_reviews"
"""Attribute of a run with open reviews; its value tells one set of open reviews from another."""


def started_tags(run: Run) -> tuple[str, ...]:
    """The tags that the run was started with."""
    count = run.attributes.get(STARTED_WITH)
    return run.tags[:count] if isinstance(count, int) else run.tags


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides whether an announcement of replayed code has been stored already."""

    clean_epoch: int
    new_code: bool

    def stored(self, announcement: Announcement) -> bool:
        """Whether a turn that ended in order has stored it."""
        if announcement.live or announcement.epoch > self.clean_epoch:
            return False
        if not self.new_code:
            return True
        return isinstance(announcement.what, Chunk) and not announcement.last


class Announcer:
    """Stores the announcements of one turn, each value once."""

    def __init__(
        self, ports: Ports, run: Run, outgoing: list[Announcement], streams: Streams, *, code_version: str
    ) -> None:
        self._ports = ports
        self._run_id = run.id
        self._epoch = run.epoch
        self._outgoing = outgoing
        self._streams = streams
        self._situation = Situation(run.clean_epoch, run.code_version != code_version)
        self._values: dict[str, str] = {}
        self._tags = run.tags
        self._attributes: dict[str, AttributeValue] = dict(run.attributes)

    def store(self) -> None:
        """Stores what was announced since the last call; of several values of one key the last.

        Raises:
            LimitExceeded: Too many tags or attributes.
            Fenced: Another invocation owns the run.
        """
        if not self._outgoing:
            return
        made = [one.what for one in self._outgoing if not self._situation.stored(one)]
        self._outgoing.clear()
        values: dict[str, str] = {}
        tags, attributes = self._tags, dict(self._attributes)
        for what in made:
            match what:
                case Value(key, text):
                    values[key] = text
                case Tags(added):
                    attributes.setdefault(STARTED_WITH, len(self._tags))
                    tags = check_tags((*tags, *added))
                case AttributeValues(new):
                    attributes |= new
                case Chunk(stream, body):
                    self._streams.append(stream, body)
                case _:
                    assert_never(what)
        self._put(values)
        self._annotate(tags, attributes)

    def show_reviews(self, reviews: Iterable[ReviewOperation]) -> None:
        """Lets these reviews be listed and decided, and no others. Stores nothing where they are known already."""
        open_reviews = sorted(reviews, key=lambda review: review.location)
        shown = _names_of(open_reviews)
        if self._attributes.get(REVIEWS, "") == shown:
            return
        opened = {review.location: review.opened_at for review in open_reviews}
        known = (
            opened_from(self._ports.store.get_state(self._run_id, STATE_PREFIX))
            if self._has_reviews
            else dict[str, float]()
        )
        new = [review for review in open_reviews if known.get(review.location) != review.opened_at]
        self._put({review.state_key: review.state() for review in new})
        self._put({STATE_PREFIX: open_list(opened)})
        attributes = {name: value for name, value in self._attributes.items() if name != REVIEWS}
        self._annotate(self._tags, attributes | {REVIEWS: shown} if shown else attributes)

    @property
    def annotations(self) -> tuple[tuple[str, ...], dict[str, AttributeValue]]:
        """The run's tags, and those of its attributes that are the workflow's own."""
        own = {name: value for name, value in self._attributes.items() if name not in {STARTED_WITH, REVIEWS}}
        return self._tags, own

    @property
    def _has_reviews(self) -> bool:
        return REVIEWS in self._attributes

    def _put(self, values: dict[str, str]) -> None:
        for key, text in values.items():
            if self._values.get(key) != text:
                self._ports.store.put_state(self._run_id, key, text, epoch=self._epoch)
                self._values[key] = text

    def _annotate(self, tags: tuple[str, ...], attributes: dict[str, AttributeValue]) -> None:
        if (tags, attributes) == (self._tags, self._attributes):
            return
        check_attributes(attributes)
        self._ports.store.annotate(self._run_id, epoch=self._epoch, tags=tags, attributes=attributes)
        self._tags, self._attributes = tags, attributes


def _names_of(reviews: Sequence[ReviewOperation]) -> str:
    """Tells one set of reviews from another in a few characters."""
    if not reviews:
        return ""
    names = " ".join(f"{review.name} {review.opened_at}" for review in reviews)
    return f"{len(reviews)}.{blake2b(names.encode(), digest_size=6).hexdigest()}"
