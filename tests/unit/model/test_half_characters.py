"""Half a character (a lone surrogate) is refused by name, as any other odd character is."""

from __future__ import annotations

import pytest

from durable.errors import InvalidName
from durable.model.ids import check_name, check_run_id
from durable.model.location import escape
from durable.model.tags import check_tags

HALF = "half \ud800"


def test_in_ids_names_and_tags() -> None:
    with pytest.raises(InvalidName):
        check_run_id(HALF)
    with pytest.raises(InvalidName):
        check_name("signal", HALF)
    with pytest.raises(InvalidName):
        check_tags([HALF])


def test_in_the_name_of_an_operation_it_is_spelt_out() -> None:
    assert escape(HALF).isascii()
