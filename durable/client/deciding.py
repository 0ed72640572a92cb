"""What people decide: reviews and breakpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from durable import codec
from durable.client import listing
from durable.client.part import ClientPart
from durable.errors import InvalidName, NotAReviewer, NotWaiting
from durable.model.envelope import Deliver
from durable.model.ids import check_name
from durable.model.review import ReviewState, open_reviews
from durable.options import count
from durable.ports import Condition
from durable.values import Review

if TYPE_CHECKING:
    from durable.definitions import Workflow
    from durable.model.run import Run

HAS_REVIEWS: Final = (Condition("_reviews", "!=", ""),)
"""What the engine sets on a run while it has open reviews."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenReview:
    """A review that waits for its decision."""

    run_id: str
    workflow: str
    name: str
    location: str
    """Tells reviews of one name apart where they stand in branches or loops."""
    artifact: Any
    """What is to be decided about, as JSON data."""
    reviewers: tuple[str, ...]
    """Who may decide at this moment."""
    opened_at: datetime
    deadline: datetime | None


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """Some of the open reviews."""

    reviews: Sequence[OpenReview]
    cursor: str | None = None


class Deciding(ClientPart):
    """The part of the client with which people decide."""

    def reviews(
        self,
        workflow: Workflow[Any, Any] | str | None = None,
        *,
        reviewer: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> ReviewPage:
        """Open reviews of the newest runs first, those that `reviewer` may decide if a name is given.

        A page covers up to `limit` runs that have open reviews: it may hold more reviews, or, filtered, none. The listing
        is a moment behind.
        """
        count("limit", limit, minimum=1)
        names = listing.names_of(self.app, workflow)
        page = listing.list_runs(self.ports.store, names, status="open", where=HAS_REVIEWS, limit=limit, cursor=cursor)
        found: list[OpenReview] = []
        for row in page.runs:
            run = self.ports.store.get(row.id)
            if run is not None and not run.ended:
                found += self._of(run)
        wanted = [review for review in found if reviewer is None or reviewer in review.reviewers]
        return ReviewPage(wanted, page.cursor)

    def reviews_of(self, run_id: str) -> Sequence[OpenReview]:
        """The open reviews of one run; none once it has ended."""
        run = self.get(run_id)
        return [] if run.ended else self._of(run)

    def decide_review(
        self,
        run_id: str,
        review: str,
        decision: Literal["approved", "rejected"],
        /,
        *,
        reviewer: str,
        comment: str = "",
        sections: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Decides a review, named by its name or its location; the first decision counts, further ones change nothing.

        Raises:
            RunNotFound, RunEnded: Nothing was sent.
            NotWaiting: The run has no such review open.
            NotAReviewer: The reviewer is not asked, or not yet.
        """
        if decision not in {"approved", "rejected"}:
            raise InvalidName("decision", decision, '"approved" or "rejected"')
        check_name("reviewer", reviewer)
        run_id = self._open_run(run_id).id
        state = self._open_review(run_id, review)
        allowed = state.deciders(self.ports.clock.now())
        if reviewer not in allowed:
            raise NotAReviewer(run_id, review, reviewer, allowed)
        value = Review(
            decision=decision,
            reviewer=reviewer,
            comment=comment,
            sections=tuple((title, text) for title, text in sections),
        )
        body = codec.encode(value, Review, what="the decision")
        self.ports.runs.send(Deliver(run_id=run_id, id=state.decision_id, name=state.channel, body=body, kind="review"))

    def continue_breakpoint(self, run_id: str, label: str) -> None:
        """Lets a run go on that stands at a breakpoint; twice is harmless.

        Raises:
            RunNotFound, RunEnded: Nothing was sent.
            NotWaiting: The run does not stand at this breakpoint.
        """
        check_name("label of a breakpoint", label)
        run = self._open_run(run_id)
        if not {f"continue:{label}", "*"} & set(run.waiting_for):
            raise NotWaiting(run_id, f'breakpoint "{label}"')
        # The epoch in the id: a second call while the run stands there is the same message.
        message_id = codec.digest(codec.encode([label, run.clean_epoch], codec.UNTYPED))
        self.ports.runs.send(
            Deliver(run_id=run.id, id=f"continue:{message_id}", name=label, body="null", kind="continue")
        )

    def _open_review(self, run_id: str, review: str) -> ReviewState:
        states = open_reviews(self.ports.store.states(run_id))
        found = [state for state in states if review == state.location] or [s for s in states if review == s.name]
        if not found:
            raise NotWaiting(run_id, f'a decision of review "{review}"')
        if len(found) > 1:
            places = ", ".join(state.location for state in found)
            raise InvalidName("review", review, f"one of the locations {places}: several of this name are open")
        return found[0]

    def _of(self, run: Run) -> list[OpenReview]:
        now = self.ports.clock.now()
        return [
            OpenReview(
                run_id=run.id,
                workflow=run.workflow,
                name=state.name,
                location=state.location,
                artifact=state.artifact,
                reviewers=state.deciders(now),
                opened_at=datetime.fromtimestamp(state.opened_at, UTC),
                deadline=None if state.deadline is None else datetime.fromtimestamp(state.deadline, UTC),
            )
            for state in open_reviews(self.ports.store.states(run.id))
        ]
