"""A review is listed while it is open and decided once, by those who were asked."""

from typing import Any

import pytest
from pydantic import BaseModel

from durable import (
    App,
    Branch,
    Context,
    InvalidName,
    NotAReviewer,
    NotStorable,
    NotWaiting,
    Review,
    RunEnded,
    Signal,
    WaitTimeout,
    after,
    auto_reject,
)
from durable.testing import TestEnvironment

STOP = Signal("stop", str)
app = App("reviewed")


class Claim(BaseModel):
    cents: int


def note(text: str) -> str:
    return text


@app.workflow
async def expense(ctx: Context, cents: int) -> Review:
    review = await ctx.review(
        "expense",
        Claim(cents=cents),
        reviewers=["ann", "bob"],
        escalate=[after("4h", to="boss"), auto_reject("2 days")],
    )
    await ctx.step("note", note, review.comment)
    return review


@app.workflow
async def in_time(ctx: Context) -> str:
    try:
        await ctx.review("quick", {"a": 1}, reviewers=["ann"], timeout="1h", escalate=[auto_reject("2h")])
    except WaitTimeout:
        return "too late"
    return "decided"


async def asked(ctx: Context) -> str:
    return (await ctx.review("given up", None, reviewers=["ann"])).decision


async def stopped(ctx: Context) -> str:
    return await ctx.wait_for_signal(STOP)


@app.workflow
async def given_up(ctx: Context) -> str:
    winner = await ctx.race("first", Branch("review", asked), Branch("stop", stopped))
    await ctx.wait_for_signal(STOP)
    return winner.value


async def one(ctx: Context, name: str) -> str:
    return (await ctx.review("part", name, reviewers=[name])).comment


@app.workflow
async def several(ctx: Context) -> list[str]:
    return await ctx.map("parts", ["ann", "bob"], one, key=str)


def test_an_open_review_is_listed_and_decided(world: Any) -> None:
    with world(app) as env:
        handle = env.start(expense, 1200, id="e-1")
        env.run_until_idle()
        (review,) = env.reviews().reviews
        assert (review.run_id, review.name, review.artifact, review.reviewers) == (
            "e-1",
            "expense",
            {"cents": 1200},
            ("ann", "bob"),
        )
        assert env.reviews(expense, reviewer="ann").reviews == [review]
        assert env.reviews(reviewer="boss").reviews == []
        env.decide_review(
            "e-1", "expense", "approved", reviewer="bob", comment="fine", sections=[("sum", "matches the bill")]
        )
        decided = handle.result()
        assert decided == Review("approved", "bob", "fine", (("sum", "matches the bill"),))
        assert env.reviews().reviews == []
        with pytest.raises(RunEnded):
            env.decide_review("e-1", "expense", "rejected", reviewer="ann")


def test_only_those_who_were_asked_decide_and_others_only_after_the_escalation() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(expense, 5, id="e-1")
        env.run_until_idle()
        for nobody in ("eve", "boss"):
            with pytest.raises(NotAReviewer, match="ann, bob"):
                env.decide_review("e-1", "expense", "approved", reviewer=nobody)
        env.advance(hours=5)
        assert [review.run_id for review in env.reviews(reviewer="boss").reviews] == ["e-1"]
        env.decide_review("e-1", "expense", "rejected", reviewer="boss")
        assert handle.result() == Review("rejected", "boss")


def test_the_first_decision_counts() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(expense, 5, id="e-1")
        env.run_until_idle()
        env.decide_review("e-1", "expense", "rejected", reviewer="ann")
        env.decide_review("e-1", "expense", "approved", reviewer="bob")
        assert handle.result().reviewer == "ann"
        assert env.get("e-1").undelivered == 0


def test_nobody_decides_and_the_escalation_rejects() -> None:
    with TestEnvironment(app) as env:
        review = env.start(expense, 5).result()
        assert (review.decision, review.reviewer) == ("rejected", "")


def test_nobody_decides_and_the_review_times_out() -> None:
    with TestEnvironment(app) as env:
        assert env.start(in_time).result() == "too late"


def test_a_review_that_was_given_up_is_not_listed_any_more() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(given_up, id="g")
        env.run_until_idle()
        assert len(env.reviews().reviews) == 1
        handle.send(STOP, "enough")
        env.run_until_idle()
        assert env.reviews().reviews == []
        with pytest.raises(NotWaiting, match='review "given up"'):
            env.decide_review("g", "given up", "approved", reviewer="ann")
        handle.send(STOP, "more")
        assert handle.result() == "enough"


def test_reviews_of_one_name_are_told_apart_by_their_location() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(several, id="s")
        env.run_until_idle()
        first, second = env.reviews_of("s")
        with pytest.raises(InvalidName, match="one of the locations"):
            env.decide_review("s", "part", "approved", reviewer="ann")
        env.decide_review("s", second.location, "approved", reviewer="bob", comment="b")
        env.run_until_idle()
        assert [review.location for review in env.reviews_of("s")] == [first.location]
        env.decide_review("s", "part", "approved", reviewer="ann", comment="a")
        assert handle.result() == ["a", "b"]


def test_a_decision_of_one_review_does_not_publish_the_others_again() -> None:
    with TestEnvironment(app) as env:
        env.start(several, id="s")
        env.run_until_idle()
        published = list(env.calls).count("store.put_state")
        assert published == 2 + 1  # both, and the list of them
        env.decide_review("s", env.reviews_of("s")[0].location, "approved", reviewer="ann")
        env.run_until_idle()
        assert list(env.calls).count("store.put_state") == published + 1


def test_open_reviews_are_published_once() -> None:
    with TestEnvironment(app) as env:
        handle = env.start(expense, 5, id="e-1")
        env.run_until_idle()
        published = list(env.calls).count("store.put_state")
        handle.send(STOP, "a message that nobody wants")
        env.run_until_idle()
        assert list(env.calls).count("store.put_state") == published


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda ctx: ctx.review("r", None, reviewers="ann"), "ValueError"),
        (lambda ctx: ctx.review("r", None, reviewers=[]), "ValueError"),
        (lambda ctx: ctx.review("r", object(), reviewers=["ann"]), NotStorable.__name__),
        (
            lambda ctx: ctx.review("r", 1, reviewers=["ann"], escalate=[auto_reject("1h"), auto_reject("2h")]),
            "ValueError",
        ),
        (lambda _ctx: after("1h", to=[]), "ValueError"),
    ],
)
def test_a_review_that_nobody_could_decide_is_refused_at_the_call(ask: Any, error: str) -> None:
    refused = App("refused")

    @refused.workflow
    async def body(ctx: Context) -> None:
        await ask(ctx)

    with TestEnvironment(refused) as env:
        handle = env.start(body)
        env.run_until_idle()
        failure = env.get(handle.id).error
        assert failure is not None
        assert failure.type == error
