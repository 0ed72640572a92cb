"""Which headers a run may have, and which of an HTTP request it gets."""

from typing import Any

import pytest

from durable.errors import InvalidInput, InvalidName, LimitExceeded
from durable.model.headers import check_headers, headers_of_request

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_copy_is_given_back() -> None:
    headers = {"traceparent": TRACEPARENT, "durable-tenant": "größe", "x_1.y": ""}
    checked = check_headers(headers)
    assert checked == headers
    assert checked is not headers


@pytest.mark.parametrize("name", ["", "Tenant", "my tenant", "-x", "ten\nant", "täg", ":path"])
def test_a_name_that_would_not_survive_is_refused(name: str) -> None:
    with pytest.raises(InvalidName, match="header"):
        check_headers({name: "x"})


@pytest.mark.parametrize("headers", [{"n": 1}, {1: "n"}, {"n": None}, {"n": "a\r\nb: c"}, "traceparent", [("a", "b")]])
def test_what_is_no_text_or_cannot_be_printed_is_refused(headers: Any) -> None:
    with pytest.raises(InvalidInput, match="header"):
        check_headers(headers)


def test_a_refused_value_is_not_shown() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_headers({"token": "s3cret\n"})
    assert "s3cret" not in str(refused.value)


def test_all_together_may_have_512_bytes_names_included() -> None:
    assert check_headers({"n": "x" * 511})
    with pytest.raises(LimitExceeded, match=r"513.*512"):
        check_headers({"n": "x" * 510 + "é"})


def test_a_request_gives_its_trace_context_and_what_is_meant_for_the_run() -> None:
    request = {
        "traceparent": TRACEPARENT, "tracestate": "a=1", "baggage": "k=v", "durable-tenant": "acme",
        "authorization": "Bearer s3cret", "content-type": "application/json", "x-durable-tenant": "other",
    }  # fmt: skip
    kept = {"traceparent": TRACEPARENT, "tracestate": "a=1", "baggage": "k=v", "durable-tenant": "acme"}
    assert headers_of_request(request) == kept


def test_trace_state_and_baggage_that_do_not_fit_are_left_out() -> None:
    request = {"traceparent": TRACEPARENT, "tracestate": "s" * 600, "baggage": "b" * 100}
    assert headers_of_request(request) == {"traceparent": TRACEPARENT, "baggage": "b" * 100}
    assert headers_of_request({"traceparent": "00\n", "baggage": ""}) == {}


def test_what_is_meant_for_the_run_is_refused_where_it_does_not_fit() -> None:
    with pytest.raises(LimitExceeded, match="512"):
        headers_of_request({"durable-note": "x" * 600})
