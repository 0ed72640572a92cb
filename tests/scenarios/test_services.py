"""Steps reach clients and settings through `app.services`, built once per container by the first step that asks."""

from __future__ import annotations

from dataclasses import dataclass, field

from durable import App, Context
from durable.testing import TestEnvironment


@dataclass
class Services:
    """What the steps of this app need."""

    sent: list[str] = field(default_factory=list[str])


built: list[Services] = []


def make_services() -> Services:
    built.append(Services())
    return built[-1]


app = App("mailer", services=make_services)


def mail(to: str) -> str:
    app.services.sent.append(to)
    return to


@app.workflow
async def newsletter(ctx: Context, readers: list[str]) -> int:
    for reader in readers:
        await ctx.step(mail, reader)
        await ctx.sleep("1h")
    return len(readers)


def test_services_are_built_once_for_all_steps() -> None:
    """At most once here: another test of this process may have run the workflow before."""
    before = len(built)
    with TestEnvironment(app) as env:
        assert env.start(newsletter, ["ada", "grace"], id="r").result() == 2
    assert len(built) - before <= 1
    assert app.services.sent[-2:] == ["ada", "grace"]
