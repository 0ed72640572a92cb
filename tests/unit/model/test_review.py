"""Who may decide a review, and which reviews are open."""

from durable.model.review import STATE_PREFIX, Escalated, ReviewState, open_list, open_reviews

STATE = ReviewState(
    location="a/expense",
    name="expense",
    channel="x1",
    artifact={"cents": 3},
    reviewers=("ann", "bob"),
    escalated=(Escalated(at=110.0, to=("boss", "ann")), Escalated(at=120.0, to=("owner",))),
    opened_at=100.0,
)


def test_escalations_add_reviewers_from_their_moment_on() -> None:
    assert STATE.deciders(109.9) == ("ann", "bob")
    assert STATE.deciders(110.0) == ("ann", "bob", "boss")
    assert STATE.deciders(500.0) == ("ann", "bob", "boss", "owner")


def test_only_listed_reviews_are_open() -> None:
    states = {STATE_PREFIX + STATE.location: STATE.to_text(), "progress": "1"}
    assert open_reviews(states) == []
    assert open_reviews(states | {STATE_PREFIX: open_list({STATE.location: 100.0})}) == [STATE]
    assert open_reviews(states | {STATE_PREFIX: open_list({})}) == []


def test_a_review_that_is_opened_anew_takes_another_decision() -> None:
    again = ReviewState(
        location="a/expense", name="expense", channel="x1", artifact=None, reviewers=("ann",), opened_at=200.0
    )
    assert again.decision_id != STATE.decision_id
