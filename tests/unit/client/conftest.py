import pytest

from tests.unit.client.worlds import World, new_world


@pytest.fixture
def world() -> World:
    return new_world()
