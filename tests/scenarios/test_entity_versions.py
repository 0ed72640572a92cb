"""The state of an entity outlives its class: older states are migrated, later ones wait for code that knows them."""

from typing import Any

import pytest
from pydantic import BaseModel

from durable import App, EntityFailed, RunBlocked
from durable.testing import TestEnvironment


def app_of(version: int, cls: Any, migrate: Any = None) -> App[Any]:
    app = App("meters")
    app.entity(name="Meter", version=version, migrate=migrate)(cls)
    return app


def first_meter() -> Any:
    class Meter(BaseModel):
        reading: str = "0"

        def read(self, value: int) -> str:
            self.reading = str(value)
            return self.reading

    return Meter


def second_meter() -> Any:
    class Meter(BaseModel):
        readings: list[int] = []

        def read(self, value: int) -> int:
            self.readings.append(value)
            return len(self.readings)

    return Meter


def migrated(old: Any) -> Any:
    return {"readings": [int(old["reading"])]}


def test_an_older_state_is_migrated_when_it_is_next_used() -> None:
    First, Second = first_meter(), second_meter()
    env = TestEnvironment(app_of(1, First))
    env.entity(First, "m").call(First.read, 5)
    env.deploy(app_of(2, Second, migrated))
    assert env.entity(Second, "m").state() == Second(readings=[5])
    assert env.entity(Second, "m").call(Second.read, 6) == 2
    assert env.entity(Second, "m").state() == Second(readings=[5, 6])


def test_a_later_state_blocks_the_entity_until_code_that_knows_it_is_there() -> None:
    First, Second = first_meter(), second_meter()
    env = TestEnvironment(app_of(2, Second))
    env.entity(Second, "m").call(Second.read, 5)
    env.deploy(app_of(1, First))
    with pytest.raises(RunBlocked, match="holds a state of version 2, and the deployed class has version 1"):
        env.entity(First, "m", id="kept").call(First.read, 6)
    env.deploy(app_of(2, Third := second_meter()))
    env.advance("2m")
    assert env.entity(Third, "m", id="kept").call(Third.read, 6) == 2


def test_a_migration_that_fails_blocks_the_entity_too() -> None:
    First, Second = first_meter(), second_meter()
    env = TestEnvironment(app_of(1, First))
    env.entity(First, "m").call(First.read, 5)
    env.deploy(app_of(2, Second, lambda old: old["gone"]))
    with pytest.raises(RunBlocked, match="KeyError"):
        env.entity(Second, "m", id="kept").call(Second.read, 6)
    env.deploy(app_of(2, Third := second_meter(), migrated))
    env.advance("2m")
    assert env.entity(Third, "m", id="kept").call(Third.read, 6) == 2
    assert env.entity(Third, "m").state() == Third(readings=[5, 6])


def test_an_operation_that_is_gone_fails_and_the_entity_lives_on() -> None:
    First, Second = first_meter(), second_meter()
    env = TestEnvironment(app_of(1, First))
    env.entity(First, "m").delayed("1h").signal(First.read, 5)
    env.run_until_idle()

    class Other(BaseModel):
        reading: str = "0"

        def read(self, value: list[str]) -> str:
            return value[0]

        def reset(self) -> str:
            return self.reading

    env.deploy(app_of(1, Other))
    env.advance("2h")
    assert env.entity(Other, "m").call(Other.reset) == "0"
    with pytest.raises(EntityFailed):
        env.entity(Other, "m").call(Other.read, [])
    del Second
