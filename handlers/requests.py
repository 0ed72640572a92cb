"""What callers send: the bodies of the API's requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from durable.errors import ErrorInfo

Name = Annotated[str, Field(min_length=1)]
Id = Annotated[str | None, Field(min_length=1)]


class Request(BaseModel):
    """A misspelt member is refused, not ignored: `tag` for `tags` would go unnoticed for long."""

    model_config = ConfigDict(extra="forbid")


class MessageRequest(Request):
    """`POST /runs/{id}/messages`."""

    name: Name
    body: Any = None
    id: Id = None


class StartRequest(Request):
    """`POST /runs`."""

    workflow: Name
    input: Any = None
    id: Id = None
    tags: list[str] = []
    on_conflict: Literal["return", "error"] = "return"
    message: MessageRequest | None = None

    @model_validator(mode="after")
    def _a_message_goes_to_one_run(self) -> Self:
        if self.message is not None and (self.id is None or self.on_conflict != "return"):
            raise ValueError('a start with a message names the run by its "id", and messages the one that exists')
        return self


class TerminateRequest(Request):
    """`POST /runs/{id}/terminate`; the body may be left out."""

    reason: str | None = None


class CancelRequest(Request):
    """`POST /runs/{id}/cancel`; the body may be left out."""

    mode: Literal["graceful", "compensate", "terminate"] = "graceful"
    reason: str | None = None

    @model_validator(mode="after")
    def _only_a_termination_keeps_a_reason(self) -> Self:
        if self.reason is not None and self.mode != "terminate":
            raise ValueError('a reason is kept of the mode "terminate" only; leave it out')
        return self


class UpdateRequest(Request):
    """`POST /runs/{id}/updates/{name}`."""

    arg: Any = None
    id: Id = None


class NamedUpdateRequest(UpdateRequest):
    """`POST /runs/{id}/updates`, for names that do not fit into a path."""

    name: Name


class Section(Request):
    """A part of what a reviewer says."""

    title: Name
    text: str


class DecisionRequest(Request):
    """`POST /reviews/{run id}/{review}`."""

    decision: Literal["approved", "rejected"]
    reviewer: Name
    comment: str = ""
    sections: list[Section] = []


class NamedDecisionRequest(DecisionRequest):
    """`POST /runs/{id}/reviews`, for reviews that are named by their location."""

    review: Name


class ContinueRequest(Request):
    """`POST /runs/{id}/continue`."""

    label: Name


class CompletionRequest(Request):
    """`POST /callbacks/{token}/complete`; the body may be left out."""

    result: Any = None


class CallbackError(Request):
    """What went wrong, as an outside system tells it."""

    type: Name = "Error"
    message: str
    data: Any = None


class FailureRequest(Request):
    """`POST /callbacks/{token}/fail`."""

    error: CallbackError | str
    retryable: bool = False

    @property
    def told(self) -> str | dict[str, Any]:
        """The error as the client takes it."""
        return self.error if isinstance(self.error, str) else self.error.model_dump()


class HeartbeatRequest(Request):
    """`POST /callbacks/{token}/heartbeat`; the body may be left out."""

    progress: Any = None


class ClaimRequest(Request):
    """`POST /queues/{queue}/claim`; the body may be left out."""

    worker: str = Field(default="over HTTP", min_length=1, max_length=100)
    wait: float = Field(default=0.0, ge=0, le=20)


class ErrorOfTask(CallbackError):
    """What went wrong, as a worker tells it; with its module an error is one that the workflow may know by class."""

    module: str = ""


class TaskFailureRequest(Request):
    """`POST /tasks/{token}/fail`."""

    error: ErrorOfTask | str
    retryable: bool = True
    retry_after: float | None = Field(default=None, ge=0)

    @property
    def told(self) -> ErrorInfo:
        """The error as runs keep it."""
        error = ErrorOfTask(message=self.error) if isinstance(self.error, str) else self.error
        return ErrorInfo(**error.model_dump())


class EventRequest(Request):
    """`POST /events`."""

    name: Name
    payload: Any = None
    id: Id = None
    buffer: str | None = None


class NoBody(Request):
    """A request that says everything with its path."""
