"""What outside systems report: answers to callbacks, their signs of life, and calls of webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_core import PydanticSerializationError, from_json, to_jsonable_python

from durable import codec
from durable.client import reading
from durable.client.part import ClientPart
from durable.errors import ErrorInfo, InvalidInput, NotStorable, RunEnded, RunNotFound
from durable.model.callback import CallbackAnswer
from durable.model.envelope import Deliver
from durable.model.hook import WHOLE, response_in
from durable.model.ids import check_message_id
from durable.model.limits import ERROR_DATA_BYTES, ERROR_MESSAGE_CHARS, PROGRESS_BYTES
from durable.model.links import born_of, place_in
from durable.model.tokens import Claims, TokenKind, verify

if TYPE_CHECKING:
    from durable.model.hook import HookResponse
    from durable.model.run import Run

TYPE_CHARS: Final = 256
"""The longest name of a kind of failure."""


class Answering(ClientPart):
    """The part of the client with which outside systems answer. A token says which run is meant, and what for."""

    def complete_callback(self, token: str, result: object = None, /) -> None:
        """Reports the result of a callback; when this returns, it is durably accepted.

        The first report counts: a second one, and one that comes after the run has stopped waiting, change nothing.

        Args:
            token: What the callback's `submit` was given.
            result: Anything that has a JSON form; the run reads it as the type that it expects.

        Raises:
            InvalidToken: The token is none of a callback here.
            TokenExpired: Its time is over.
            RunNotFound, RunEnded: Nobody waits for it any more.
            NotStorable, LimitExceeded: The result has no JSON form, or is too large.
        """
        claims = self._claims(token, "callback")
        text = _json_text(result, "the result of a callback")
        self._answer(claims, CallbackAnswer(value=from_json(text)))

    def fail_callback(
        self, token: str, error: str | Mapping[str, Any] | BaseException, /, *, retryable: bool = False
    ) -> None:
        """Reports that what the callback asked for has failed: the run gets a CallbackFailed.

        Args:
            token: What the callback's `submit` was given.
            error: A message; or `{"type"?, "message", "data"?}`; or an exception.
            retryable: Whether it may be asked again: `ctx.retrying` does.

        Raises:
            InvalidInput: The error is none of these. Otherwise as `complete_callback`.
        """
        claims = self._claims(token, "callback")
        self._answer(claims, CallbackAnswer(error=_error_info(error), retryable=retryable))

    def heartbeat_callback(self, token: str, progress: object = None, /) -> None:
        """Tells that the work goes on, so that a run with `heartbeat=` waits on; `progress` is for operators to see.

        Raises:
            LimitExceeded: The progress is larger than 4 KB. Otherwise as `complete_callback`.
        """
        claims = self._claims(token, "callback")
        text = None if progress is None else _json_text(progress, "the progress of a callback", PROGRESS_BYTES)
        run = self._run_of(claims)
        self.ports.store.beat_task(run.id, place_in(claims), now=self.ports.clock.now(), progress=text)

    def call_webhook(self, token: str, body: object = None, /, *, id: str | None = None) -> HookResponse:
        """Passes a call of a webhook on to its run, and gives what its caller is to be answered.

        Args:
            token: The last part of the webhook's address.
            body: What the call carried, as JSON data.
            id: Of the call: the same id counts once.

        Raises:
            InvalidToken: The token is none of a webhook here.
            RunNotFound, RunEnded: Nobody waits for it any more.
            LimitExceeded: The body is larger than 256 KB.
        """
        claims = self._claims(token, "webhook")
        text = _json_text(body, "the body of a webhook call")
        run = self._run_of(claims, continued=True)
        call = self.ports.new_id() if id is None else _digest(claims.location, check_message_id(id))
        self.ports.runs.send(
            Deliver(run_id=run.id, id=f"webhook:{call}", name=claims.location, body=text, kind="webhook")
        )
        return response_in(claims.extra)

    def webhook_wants_whole(self, token: str, /) -> bool:
        """Whether the run wants whole requests, HookRequest, and not their payload alone; raises InvalidToken."""
        return WHOLE in self._claims(token, "webhook").extra

    def webhook_response(self, token: str, /) -> HookResponse:
        """What callers of a webhook are answered, without calling it; raises InvalidToken."""
        return response_in(self._claims(token, "webhook").extra)

    def _claims(self, token: str, kind: TokenKind) -> Claims:
        return verify(self.ports.signing.keys(), token, kind=kind, now=self.ports.clock.now())

    def _run_of(self, claims: Claims, *, continued: bool = False) -> Run:
        """The run that a token is about, or the last of those that continue it, if it has not ended."""
        run = self.ports.store.get(claims.run_id)
        if run is None or run.born != born_of(claims):
            raise RunNotFound(claims.run_id)
        if continued and run.successor is not None:
            run = reading.last_of_lineage(self.ports, run.id)
        if run.ended:
            raise RunEnded(run.id, run.status)
        return run

    def _answer(self, claims: Claims, answer: CallbackAnswer) -> None:
        run = self._run_of(claims)
        self.ports.runs.send(
            Deliver(run_id=run.id, id=claims.id, name=claims.location, body=answer.to_text(), kind="callback")
        )


def _digest(location: str, id: str) -> str:
    return codec.digest(codec.encode([location, id], codec.UNTYPED))


def _json_text(value: object, what: str, limit: int | None = None) -> str:
    try:
        plain = to_jsonable_python(value)
    except (PydanticSerializationError, ValueError, RecursionError) as problem:
        raise NotStorable(f"{what} has no JSON form: {problem}") from None
    return codec.encode(plain, codec.UNTYPED, what=what, **({} if limit is None else {"limit": limit}))


def _error_info(error: object) -> ErrorInfo:
    """What is kept of a failure: outside classes are names only, whatever this process has loaded."""
    what = "the error of a callback"
    if isinstance(error, BaseException):
        return _error_info({"type": type(error).__name__, "message": str(error)})
    if isinstance(error, str):
        return _error_info({"message": error})
    if not isinstance(error, Mapping):
        raise InvalidInput(what, 'it is a text, or {"type": ..., "message": ..., "data": ...}')
    told = cast("Mapping[str, Any]", error)
    kind, message = told.get("type", "Error"), told.get("message")
    if unknown := set(told) - {"type", "message", "data"}:
        raise InvalidInput(what, f"there is no {', '.join(sorted(map(str, unknown)))}; it has type, message and data")
    if not isinstance(message, str) or not isinstance(kind, str) or not 0 < len(kind) <= TYPE_CHARS:
        raise InvalidInput(what, f"its message is a text, and so is its type, of at most {TYPE_CHARS} characters")
    data = told.get("data")
    if data is not None:
        _json_text(data, "the data of a callback's error", ERROR_DATA_BYTES)
    return ErrorInfo(type=kind, message=message[:ERROR_MESSAGE_CHARS], data=data)
