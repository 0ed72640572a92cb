"""What callers do with runs: start, message, look at, end. Synchronous and safe to share between threads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from typing_extensions import TypeVar

from durable.channels import Signal
from durable.client import family, listing, reading, retrying, starting
from durable.client.answering import Answering
from durable.client.calls import Calls
from durable.client.deciding import Deciding
from durable.client.deleting import Deleting
from durable.client.entities import EntityCalls
from durable.client.handle import RunHandle
from durable.client.listing import StatusFilter
from durable.client.messaging import Messaging
from durable.client.part import FIRST_LOOK, LATER_LOOKS, LONGEST_PAUSE
from durable.client.published import Published
from durable.client.publishing import Publishing
from durable.client.starting import OnConflict
from durable.client.undone import Undone
from durable.client.updating import Updating
from durable.client.where import Where, conditions
from durable.context.mailbox import encoded_body, signal_name
from durable.definitions import input_text
from durable.errors import RunEnded, RunNotFound
from durable.flow import lane_of_run
from durable.model.duration import Duration, optional_seconds
from durable.model.envelope import Deliver, Wake
from durable.model.ids import check_message_id, check_run_id
from durable.model.run import ATTENTION
from durable.options import MISSING, count
from durable.pending import not_available

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from durable.definitions import Workflow
    from durable.model.entry import Entry
    from durable.model.run import Run
    from durable.ports import RunPage

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - the name that readers of the signatures expect
R = TypeVar("R")

CancelMode = Literal["graceful", "compensate", "terminate"]


class Client(
    Messaging, Updating, Deciding, Answering, Published, Publishing, Calls, EntityCalls, Deleting, Undone
):  # fmt: skip
    """Starts and steers the runs of an app."""

    # Starting

    @overload
    def start(
        self,
        workflow: Workflow[None, R],
        /,
        *,
        id: str | None = None,
        idempotency_key: str | None = None,
        tags: Sequence[str] = (),
        delay: Duration | None = None,
        on_conflict: OnConflict = "return",
        headers: Mapping[str, str] | None = None,
    ) -> RunHandle[R]: ...
    @overload
    def start(
        self,
        workflow: Workflow[I, R],
        input: I,
        /,
        *,
        id: str | None = None,
        idempotency_key: str | None = None,
        tags: Sequence[str] = (),
        delay: Duration | None = None,
        on_conflict: OnConflict = "return",
        headers: Mapping[str, str] | None = None,
    ) -> RunHandle[R]: ...
    @overload
    def start(
        self,
        workflow: str,
        input: object = ...,
        /,
        *,
        id: str | None = None,
        idempotency_key: str | None = None,
        tags: Sequence[str] = (),
        delay: Duration | None = None,
        on_conflict: OnConflict = "return",
        headers: Mapping[str, str] | None = None,
    ) -> RunHandle[Any]: ...
    def start(
        self,
        workflow: Any,
        input: Any = MISSING,
        /,
        *,
        id: str | None = None,
        idempotency_key: str | None = None,
        tags: Sequence[str] = (),
        delay: Duration | None = None,
        on_conflict: OnConflict = "return",
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Starts a run, or gives the one that the same start has started before.

        By name the newest version is started, and the input is JSON data as it came from outside.

        Args:
            workflow: The workflow, or its name.
            input: What it takes.
            id: The run's id; a new one if it is left out.
            idempotency_key: Starts one run however often it is used, even after that run is deleted.
            tags: Listed by; those of the workflow are added.
            delay: Not available yet.
            on_conflict: What to do when the run exists with the same workflow and input: give it, or raise.
            headers: What the run gives on to its steps and children, at most 512 bytes; those of `app.propagate` if left out.

        Raises:
            InvalidInput: The input does not fit; nothing was stored.
            RunAlreadyExists: The id belongs to a run with another workflow or input.
            IdempotencyKeySpent: The key's run has been deleted.
            LimitExceeded: The input, the tags or the headers are too large.
            LaneFull: It is a singleton, and as many runs wait already as may; nothing was stored.
        """
        starting.check_on_conflict(on_conflict)
        if delay is not None:
            not_available("client.start(delay=...)")
        if on_conflict == "replace-terminal":
            not_available('client.start(on_conflict="replace-terminal")')
        known = starting.registered(self.app, workflow)
        text = input_text(known, input, from_json=isinstance(workflow, str))
        lane = lane_of_run(known, text)
        wanted = starting.id_of_key(idempotency_key) if lane and id is None and idempotency_key else id
        run, stored_input = starting.new_run(
            self.ports, known, text, id=wanted, tags=tags, headers=self._headers(headers), lane=lane
        )
        run_id = starting.start(
            self.ports, run, stored_input, idempotency_key=idempotency_key, on_conflict=on_conflict, lane=lane
        )
        return RunHandle(self, run_id, known)

    @overload
    def handle(self, workflow: Workflow[Any, R], run_id: str, /) -> RunHandle[R]: ...
    @overload
    def handle(self, workflow: str, run_id: str, /) -> RunHandle[Any]: ...
    def handle(self, workflow: Any, run_id: str, /) -> RunHandle[Any]:
        """A handle to a run of this workflow; whether the run exists shows when it is used."""
        known = self.app.newest(workflow) if isinstance(workflow, str) else workflow
        return RunHandle(self, check_run_id(run_id), known)

    # Looking

    @overload
    def result(self, run: RunHandle[R], /, *, timeout: Duration | None = None) -> R: ...
    @overload
    def result(self, run: str, /, *, timeout: Duration | None = None) -> Any: ...
    def result(self, run: Any, /, *, timeout: Duration | None = None) -> Any:
        """The output, as soon as the run has completed.

        Raises:
            RunFailed, RunWasCancelled, RunTimedOut, RunDead: It ended otherwise; `.error` tells why.
            RunBlocked: It needs new code or a person.
            RunNotFound: There is no such run.
            TimeoutError: It has not ended within `timeout`; the run goes on.
        """
        run_id: str = run if isinstance(run, str) else run.id
        workflow: Workflow[Any, Any] | None = None if isinstance(run, str) else run.workflow
        allowed = optional_seconds(timeout, "result(timeout=...)")
        clock = self.ports.clock
        began, pause = clock.monotonic(), FIRST_LOOK
        while True:
            record = self._record(run)
            if record is not None and record.status == "completed":
                return reading.output(self.app, self.ports, record, workflow)
            if record is not None:
                reading.raise_unless_open(self.ports, record)
            left = LONGEST_PAUSE if allowed is None else began + allowed - clock.monotonic()
            if left <= 0:
                waits = f", waiting for {record.reason}" if record is not None and record.reason else ""
                status = "accepted" if record is None else record.status
                raise TimeoutError(f'run "{run_id}" has not ended within {allowed:g} s: it is {status}{waits}')
            clock.sleep(min(pause, left))
            pause = min(LONGEST_PAUSE, pause * LATER_LOOKS)

    def _record(self, run: RunHandle[Any] | str) -> Run | None:
        """None for a run whose start is on its way."""
        if isinstance(run, str):
            return self.get(run)
        try:
            return self.get(run.id)
        except RunNotFound:
            if run.accepted:
                return None
            raise

    def history(self, run_id: str) -> Sequence[Entry]:
        """What the run has recorded and what counts of it, in order of record; raises RunNotFound."""
        return reading.history(self.ports, run_id)

    def children(self, run_id: str) -> Sequence[str]:
        """Ids of the children that the run has started, in that order, without those of loop iterations that are gone.

        Raises RunNotFound. Each is a run like any other: `get`, `history` and the rest take its id.
        """
        return family.children(self.ports, run_id)

    def export(self, run_id: str) -> dict[str, Any]:
        """The run and its history as a JSON document that `durable replay` and `assert_replays` take; raises RunNotFound.

        It holds what the run was given, has recorded and was sent: as confidential as the run.
        """
        return reading.export(self.ports, run_id)

    def list(
        self,
        workflow: Workflow[Any, Any] | str | None = None,
        *,
        status: StatusFilter | None = None,
        tag: str | None = None,
        where: Where | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> RunPage:
        """A page of runs, newest first: of one workflow, or of all.

        `status` is a status, or "open" for every run that has not ended. The listing is a moment behind. Over all
        workflows, failed, dead and blocked runs come from an index of their own, whose rows may lack workflow and tags.

        Args:
            workflow: The workflow, or its name.
            status: A status, or "open".
            tag: Runs with this tag only.
            where: Runs whose attributes meet every condition: `"amount >= 100 and region == 'eu'"`, or a list of Condition.
            limit: Rows of a page.
            cursor: That of the page before.

        Raises:
            InvalidInput: The filter or the cursor is not understood.
        """
        count("limit", limit, minimum=1)
        filters = conditions(where)
        if workflow is None and status is not None and status in ATTENTION and tag is None and not filters:
            return listing.runs_needing_attention(self.ports.store, status, limit=limit, cursor=cursor)
        names = listing.names_of(self.app, workflow)
        return listing.list_runs(
            self.ports.store, names, status=status, tag=tag, where=filters, limit=limit, cursor=cursor
        )

    def count(
        self,
        workflow: Workflow[Any, Any] | str | None = None,
        *,
        status: StatusFilter | None = None,
        tag: str | None = None,
        where: Where | None = None,
    ) -> int:
        """How many runs `list` would give; reads them all."""
        names = listing.names_of(self.app, workflow)
        return listing.count(self.ports.store, names, status=status, tag=tag, where=conditions(where))

    # Messages

    @overload
    def send(self, run_id: str, signal: Signal[T], body: T, /, *, id: str | None = None) -> str: ...
    @overload
    def send(self, run_id: str, name: str, body: object, /, *, id: str | None = None) -> str: ...
    def send(self, run_id: str, signal: Any, body: Any, /, *, id: str | None = None) -> str:
        """Sends a message; when this returns, it is durably accepted. Its id, which is consumed once.

        Raises:
            RunNotFound, RunEnded: Nothing was sent.
            InvalidInput: The body does not fit the signal's type.
            LimitExceeded: The body is too large.
        """
        name, text = signal_name(signal), encoded_body(signal, body)
        message_id = self.ports.new_id() if id is None else check_message_id(id)
        run = self._open_run(run_id)
        self.ports.runs.send(Deliver(run_id=run.id, id=message_id, name=name, body=text))
        return message_id

    # Ending and mending

    def cancel(self, run_id: str, mode: CancelMode = "graceful", *, reason: str = "") -> None:
        """Ends the run: `graceful` lets it clean up, `compensate` undoes its steps first, `terminate` ends it at once.

        `graceful` and `compensate` return once the request is accepted; the run ends in a turn of its own. A blocked run
        cannot clean up: it takes a graceful request when it goes on. `reason` is kept of a termination.

        Raises:
            RunNotFound: There is no such run.
            RunEnded: It has ended already; to terminate such a run changes nothing.
        """
        if mode not in {"graceful", "compensate", "terminate"}:
            raise ValueError(f'cancel mode {mode!r} is not one of "graceful", "compensate", "terminate"')
        if mode == "terminate":
            self.terminate(run_id, reason=reason)
            return
        run = self._at_the_end(self._open_run(run_id).id, partial(self.ports.store.request_cancel, mode=mode))
        if run.ended:
            raise RunEnded(run_id, run.status)
        if run.status == "blocked" and mode == "compensate":  # undoing needs no replay
            self.ports.store.unblock(run.id, now=self.ports.clock.now())
        self.ports.runs.send(Wake(run_id=run.id, id=self.ports.new_id(), reason=f"cancel ({mode})"))

    def retry(self, run_id: str) -> None:
        """Lets a run that failed or died go on from the operation that failed; one that is open is left as it is.

        What was recorded since that operation is done again, and so is everything that a rollback has undone, under
        another idempotency key. Messages consumed there return to the mailbox.

        Raises:
            RunNotFound: There is no such run.
            RunEnded: The run has completed, was cancelled or timed out.
            RetryRefused: An at-most-once step would be done again, or messages be lost; the run stays as it was.
        """
        retrying.retry(self.ports, self.get(run_id).id)

    def terminate(self, run_id: str, *, reason: str = "") -> None:
        """Ends the run at once, without running any of its code; a run that has ended is left as it is."""
        run = self._at_the_end(run_id, partial(self.ports.store.terminate, reason=reason or "terminated by a client"))
        if run.outbox is not None:  # others have to be told
            self.ports.runs.send(Wake(run_id=run.id, id=self.ports.new_id(), reason="terminated"))

    def resume(self, run_id: str) -> None:
        """Lets a blocked run try again; harmless for other open runs."""
        run = self._at_the_end(run_id, self.ports.store.unblock)
        if run.ended:
            raise RunEnded(run_id, run.status)
        self.ports.runs.send(Wake(run_id=run.id, id=self.ports.new_id(), reason="resume"))

    def _at_the_end(self, run_id: str, act: Callable[..., Run | None]) -> Run:
        """The run after the act; one that has continued as new by then stays as it was, and its successor is acted on."""
        run = act(check_run_id(run_id), now=self.ports.clock.now())
        while run is not None and run.successor is not None:
            run_id = self.get(run.successor).id
            run = act(run_id, now=self.ports.clock.now())
        if run is None:
            raise RunNotFound(run_id)
        return run
