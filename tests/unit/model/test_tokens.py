"""Tokens: nobody can make one, change one, or use one for something else or for too long."""

import base64
import hmac
import json
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable.errors import InvalidToken, TokenExpired
from durable.model.tokens import TOKEN_CHARS, Claims, sign, verify

KEY = b"k" * 32
OTHER = b"o" * 32
NOW = 1_796_000_000.25
CLAIMS = Claims(
    kind="task", run_id="run-1", location="labels/ü", id="labels/ü:5:1", expires_at=NOW + 60, extra={"a": "b"}
)
TOKEN = sign(KEY, CLAIMS)

texts = st.text(max_size=20)
claims = st.builds(
    Claims,
    kind=st.sampled_from(["task", "callback", "webhook"]),
    run_id=texts,
    location=texts,
    id=texts,
    expires_at=st.none() | st.floats(NOW, 1e12),
    extra=st.dictionaries(texts, texts, max_size=3),
)


@given(claims)
def test_what_was_signed_is_read(given_claims: Claims) -> None:
    token = sign(KEY, given_claims)
    assert verify([KEY], token, kind=given_claims.kind, now=NOW - 1) == given_claims
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


def test_every_key_verifies_whichever_comes_first() -> None:
    assert verify([OTHER, KEY], TOKEN, kind="task", now=NOW) == CLAIMS


def test_another_deployments_token_is_refused() -> None:
    with pytest.raises(InvalidToken):
        verify([OTHER], TOKEN, kind="task", now=NOW)


@pytest.mark.parametrize("kind", ["callback", "webhook"])
def test_a_token_for_something_else_is_refused(kind) -> None:
    with pytest.raises(InvalidToken):
        verify([KEY], TOKEN, kind=kind, now=NOW)


def test_a_token_is_good_until_the_moment_at_which_it_expires() -> None:
    assert verify([KEY], TOKEN, kind="task", now=NOW + 59.9) == CLAIMS
    with pytest.raises(TokenExpired, match="2026-11-30"):
        verify([KEY], TOKEN, kind="task", now=NOW + 60)


def test_one_that_does_not_expire_is_always_good() -> None:
    lasting = replace(CLAIMS, expires_at=None)
    assert verify([KEY], sign(KEY, lasting), kind="task", now=1e15) == lasting


def test_a_forged_one_does_not_learn_whether_it_would_have_expired() -> None:
    with pytest.raises(InvalidToken):
        verify([KEY], sign(OTHER, replace(CLAIMS, expires_at=1.0)), kind="task", now=NOW)


def test_no_bit_can_be_changed() -> None:
    for place, bit in product(range(len(TOKEN)), range(7)):
        changed = TOKEN[:place] + chr(ord(TOKEN[place]) ^ 1 << bit) + TOKEN[place + 1 :]
        with pytest.raises(InvalidToken):
            verify([KEY], changed, kind="task", now=NOW)


def test_claims_cannot_be_exchanged_under_a_signature() -> None:
    payload, _, signature = TOKEN.partition(".")
    said = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    other = base64.urlsafe_b64encode(json.dumps({**said, "run_id": "run-2"}).encode()).rstrip(b"=").decode()
    with pytest.raises(InvalidToken):
        verify([KEY], f"{other}.{signature}", kind="task", now=NOW)


@pytest.mark.parametrize(
    "text",
    [
        "", ".", "..", "a", "a.b", f"{TOKEN}=", f"{TOKEN}.", f" {TOKEN}", f"{TOKEN}\n", TOKEN[:-1], "ü.ü", "x" * TOKEN_CHARS,
        f".{TOKEN.partition('.')[2]}", f"{TOKEN.partition('.')[0]}.", TOKEN * 40, "\x00.\x00", "\ud800.\ud800",
    ],
)  # fmt: skip
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidToken):
        verify([KEY], text, kind="task", now=NOW)


@pytest.mark.parametrize("text", ["{}", "[]", "null", '{"kind":"task"}', "no json"])
def test_a_signed_text_that_makes_no_claims_is_refused(text: str) -> None:
    payload = base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
    signature = base64.urlsafe_b64encode(hmac.digest(KEY, payload.encode(), "sha256")).rstrip(b"=").decode()
    with pytest.raises(InvalidToken):
        verify([KEY], f"{payload}.{signature}", kind="task", now=NOW)


def test_without_a_key_nothing_is_accepted() -> None:
    with pytest.raises(InvalidToken):
        verify([], TOKEN, kind="task", now=NOW)
