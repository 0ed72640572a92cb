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
    first, second = first_meter(), second_meter()
    env = TestEnvironment(app_of(1, first))
    env.entity(first, "m").call(first.read, 5)
    env.deploy(app_of(2, second, migrated))
    assert env.entity(second, "m").state() == second(readings=[5])
    assert env.entity(second, "m").call(second.read, 6) == 2
    assert env.entity(second, "m").state() == second(readings=[5, 6])


def test_a_later_state_blocks_the_entity_until_code_that_knows_it_is_there() -> None:
    first, second = first_meter(), second_meter()
    env = TestEnvironment(app_of(2, second))
    env.entity(second, "m").call(second.read, 5)
    env.deploy(app_of(1, first))
    with pytest.raises(RunBlocked, match="holds a state of version 2, and the deployed class has version 1"):
        env.entity(first, "m", id="kept").call(first.read, 6)
    env.deploy(app_of(2, third := second_meter()))
    env.advance("2m")
    assert env.entity(third, "m", id="kept").call(third.read, 6) == 2


def test_a_migration_that_fails_blocks_the_entity_too() -> None:
    first, second = first_meter(), second_meter()
    env = TestEnvironment(app_of(1, first))
    env.entity(first, "m").call(first.read, 5)
    env.deploy(app_of(2, second, lambda old: old["gone"]))
    with pytest.raises(RunBlocked, match="KeyError"):
        env.entity(second, "m", id="kept").call(second.read, 6)
    env.deploy(app_of(2, third := second_meter(), migrated))
    env.advance("2m")
    assert env.entity(third, "m", id="kept").call(third.read, 6) == 2
    assert env.entity(third, "m").state() == third(readings=[5, 6])


def test_an_operation_that_is_gone_fails_and_the_entity_lives_on() -> None:
    first = first_meter()
    env = TestEnvironment(app_of(1, first))
    env.entity(first, "m").delayed("1h").signal(first.read, 5)
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
