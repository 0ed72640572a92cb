"""Starting a run by the first message to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, overload

from typing_extensions import TypeVar

from durable.channels import Signal
from durable.client import reading, starting
from durable.client.handle import RunHandle
from durable.client.part import ClientPart
from durable.context.mailbox import encoded_body, signal_name
from durable.definitions import input_text
from durable.errors import RunAlreadyExists, RunEnded, RunNotFound
from durable.flow import lane_name_of_run
from durable.model.envelope import Deliver, StartSpec
from durable.model.ids import check_message_id, check_new_run_id
from durable.model.tags import check_tags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.client.client import Client
    from durable.definitions import Workflow

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - the name that readers of the signatures expect
R = TypeVar("R")


class Messaging(ClientPart):
    """The part of the client that messages runs which may not have begun."""

    @overload
    def start_with_message(
        self,
        workflow: Workflow[I, R],
        input: I,
        signal: Signal[T],
        body: T,
        /,
        *,
        id: str,
        message_id: str | None = None,
        tags: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> RunHandle[R]: ...
    @overload
    def start_with_message(
        self,
        workflow: Workflow[I, R],
        input: I,
        name: str,
        body: object,
        /,
        *,
        id: str,
        message_id: str | None = None,
        tags: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> RunHandle[R]: ...
    @overload
    def start_with_message(
        self,
        workflow: str,
        input: object,
        name: str,
        body: object,
        /,
        *,
        id: str,
        message_id: str | None = None,
        tags: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> RunHandle[Any]: ...
    def start_with_message(
        self,
        workflow: Any,
        input: Any,
        signal: Any,
        body: Any,
        /,
        *,
        id: str,
        message_id: str | None = None,
        tags: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Messages the run of this id, which begins with that if it does not exist; when this returns, it is durably accepted.

        Whoever comes second only messages, with whatever input: the run has that of the first.

        Args:
            workflow: The workflow, or its name; then the newest version is started, and the input is JSON data.
            input: What it takes; None for a workflow that takes none.
            signal: What the message is.
            body: What it says.
            id: The run's id.
            message_id: The message's own id, which is consumed once; a new one if it is left out.
            tags: For a run that begins; those of the workflow are added.
            headers: What a run that begins gives on to its steps and children; those of `app.propagate` if left out.

        Raises:
            RunEnded: There is such a run and it has ended; nothing was sent.
            RunAlreadyExists: There is such a run, of another workflow; nothing was sent.
            InvalidInput: The input or the body does not fit; nothing was sent.
            LimitExceeded: The input, the body, the tags or the headers are too large.
        """
        known = starting.registered(self.app, workflow)
        text = input_text(known, input, from_json=isinstance(workflow, str))
        envelope = Deliver(
            run_id=check_new_run_id(id),
            id=self.ports.new_id() if message_id is None else check_message_id(message_id),
            name=signal_name(signal),
            body=encoded_body(signal, body),
            start=StartSpec(
                workflow=known.name,
                version=known.version,
                input=text,
                tags=check_tags((*known.tags, *check_tags(tags))),
                headers=self._headers(headers),
                lane=lane_name_of_run(known, text),
            ),
        )
        self._refuse_unless_open(id, known)
        self.ports.runs.send(envelope)
        return RunHandle(cast("Client", self), id, known, accepted=True)

    def _refuse_unless_open(self, run_id: str, workflow: Workflow[Any, Any]) -> None:
        """A run that does not exist, or has not ended, can be sent to."""
        try:
            run = reading.the_run(self.ports, run_id)
            last = run if run.successor is None else reading.last_of_lineage(self.ports, run_id)
        except RunNotFound:
            return
        if run.workflow != workflow.name:
            raise RunAlreadyExists(run_id)
        if last.ended:
            raise RunEnded(run_id, last.status)
