"""What tokens of callbacks and webhooks say, and what stays the same of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable.errors import InvalidInput, LimitExceeded, NotAvailable
from durable.model.entry import Entry
from durable.model.hook import DEFAULT, RESPONSE_BYTES, HookResponse, response_in
from durable.model.limits import LOCATION_BYTES
from durable.model.links import Links, answer_id, born_of, place_in
from durable.model.run import Cut
from durable.model.tokens import TOKEN_CHARS, verify

KEY = b"k" * 32
NOW = 1_796_000_000.0


def links(*cuts: Cut, key: bytes = KEY, url: str | None = "https://api.test/") -> Links:
    return Links(run_id="run-1", born=5, cuts=cuts, keys=lambda: (key,), public_url=url, now=lambda: NOW)


def submitted(epoch: int) -> Entry:
    return Entry(location="pay/submit", kind="step", epoch=epoch, n=1, at=NOW)


@given(st.text("abc:/#[]~", min_size=1))
def test_a_token_tells_run_place_and_purpose(location: str) -> None:
    claims = verify([KEY], links().callback_token(location, f"{location}~r7", 60.0), kind="callback", now=NOW)
    assert (claims.run_id, claims.location) == ("run-1", location)
    assert (born_of(claims), place_in(claims)) == (5, f"{location}~r7")
    assert claims.id == answer_id(5, f"{location}~r7")


def test_what_was_submitted_before_a_retry_keeps_its_place() -> None:
    early, late = Cut(3, 1, 10), Cut(12, 1, 20)
    assert links().place_of("pay", None) == "pay"
    assert links(early).place_of("pay", None) == "pay~r10"
    assert links(early, late).place_of("pay", submitted(2)) == "pay"
    assert links(early, late).place_of("pay", submitted(12)) == "pay~r10"
    assert links(early, late).place_of("pay", submitted(21)) == "pay~r20"


def test_an_address_needs_a_public_one() -> None:
    assert links().hook_url("pay", {}).startswith("https://api.test/hooks/")
    with pytest.raises(NotAvailable, match="DURABLE_PUBLIC_URL"):
        links(url=None).hook_url("pay", {})


def test_the_longest_location_and_response_fit_into_a_token() -> None:
    response = HookResponse(body="x" * (RESPONSE_BYTES - 20))
    url = links().hook_url("x" * LOCATION_BYTES, response.to_extra())
    assert len(url.rpartition("/")[2]) < TOKEN_CHARS
    assert len(links().callback_token("x" * LOCATION_BYTES, "x" * LOCATION_BYTES, 1.0)) < TOKEN_CHARS


def test_a_response_comes_back_from_its_token() -> None:
    told = HookResponse(status=200, body="<ok/>", content_type="text/xml", headers={"x-a": "b"}, challenge="c")
    assert response_in(told.to_extra()) == told
    assert DEFAULT.to_extra() == {}
    assert response_in({}) == DEFAULT


def test_a_response_that_http_does_not_allow_is_refused() -> None:
    with pytest.raises(LimitExceeded):
        HookResponse(body="x" * RESPONSE_BYTES).to_extra()
    with pytest.raises(InvalidInput, match="status"):
        HookResponse(status=99)
    with pytest.raises(InvalidInput, match="header"):
        HookResponse(headers={"x-a": "b\r\nset-cookie: c"})
    with pytest.raises(InvalidInput, match="header"):
        HookResponse(headers={"x a": "b"})
