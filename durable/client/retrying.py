"""Retrying a run that failed or died: what failed, and what a rollback has undone, is taken back and done again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from durable.errors import RetryRefused, RunEnded, RunNotFound
from durable.model.ending import ended_from
from durable.model.envelope import Wake
from durable.model.history import counting_entries, is_start, outlives_cuts, unpacked
from durable.model.ids import check_run_id
from durable.model.links import SUBMISSION
from durable.model.message import REPORTS
from durable.model.run import TERMINAL, Cut, Settlement, retried
from durable.ops.child import child_start_from
from durable.ports import Acquired
from durable.records import pages_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from durable.model.entry import Entry
    from durable.model.message import StoredMessage
    from durable.model.run import Run
    from durable.ports import Ports

LEASE_SECONDS: Final = 60.0
"""How long a retry that was cut short keeps others away from the run."""


def retry(ports: Ports, run_id: str) -> None:
    """Lets the run go on; one that is open already is left as it is.

    Raises:
        RunNotFound: There is no such run.
        RunEnded: It has completed, was cancelled or timed out.
        RetryRefused: It would do an at-most-once step again, or lose messages.
    """
    now = ports.clock.now()
    found = ports.store.get(check_run_id(run_id))
    if found is not None and found.status in ("failed", "dead"):
        _plan(ports, found)  # a run that is refused stays as it was
    answer = ports.store.reopen(run_id, owner=ports.new_id(), now=now, lease_until=now + LEASE_SECONDS, any_ended=False)
    if not isinstance(answer, Acquired):
        _explain(ports, run_id)
        return
    run = answer.run
    try:
        entries, cut = _plan(ports, run)
    except RetryRefused:  # somebody else's retry came first, and the run has failed once more
        ports.store.release(run_id, epoch=run.epoch, now=now)
        raise
    # A retry that dies before the cut leaves a run that fails once more, and is retried once more: so what must not be
    # missing after the cut comes first.
    given_up = _retry_children(ports, run, entries)
    _forget_attempts(ports, run, entries, cut)
    _forget_submissions(ports, run, entries)
    _cut(ports, run, entries, cut, given_up)
    ports.store.settle(run_id, epoch=run.epoch, wakes=None, settlement=_suspended(run, cut, now))
    ports.runs.send(Wake(run_id=run_id, id=ports.new_id(), reason="retry"))


def _explain(ports: Ports, run_id: str) -> None:
    run = ports.store.get(run_id)
    if run is None:
        raise RunNotFound(run_id)
    if run.ended:
        raise RunEnded(
            run_id,
            run.status,
            instead="Only a run that failed or died can be retried: start a new one with the same input.",
        )


def _load(ports: Ports, run_id: str) -> tuple[Sequence[Entry], Sequence[Entry]]:
    pages = pages_of(ports.store, run_id)
    return [item for page in pages for item in page.entries], [item for page in pages for item in page.kept]


def _plan(ports: Ports, run: Run) -> tuple[Sequence[Entry], Cut]:
    """The history, and what of it is taken back: nothing, where a cut only tells that there was a retry."""
    items, kept = _load(ports, run.id)
    entries = sorted(counting_entries(run, unpacked(items)), key=lambda entry: entry.order)
    start = _start(run, entries, list(counting_entries(run, kept)))
    if start is None:
        return entries, Cut(run.epoch, 0, until=run.epoch)
    cut = Cut(*_with_carried(_anew(run, entries, start), items, start), until=run.epoch)
    _check(run, entries, cut)
    return entries, cut


def _check(run: Run, entries: Sequence[Entry], cut: Cut) -> None:
    gone = [entry for entry in entries if cut.covers(entry.order)]
    started = {entry.location for entry in entries if is_start(entry)}
    for entry in gone:
        if not entry.mark and entry.error is None and entry.location in started:
            raise RetryRefused(
                run.id,
                f'at-most-once step "{entry.location}" has succeeded after the place where it would begin, and is not done again',
                "Start a new run that leaves out what is done.",
            )
        if entry.kind == "loop" and run.pruned:
            raise RetryRefused(
                run.id,
                f'it would begin before iterations of loop "{entry.location}" that are gone: messages that they have '
                "consumed cannot be given back, nor is it known which at-most-once steps they have done",
                "Start a new run.",
            )


def _start(run: Run, entries: Sequence[Entry], kept: Sequence[Entry]) -> tuple[int, int] | None:
    """Where what is taken back begins: at the earliest step that was undone, or the earliest failure that ended the run."""
    failed = [entry.order for entry in entries if entry.key in run.failed_at]
    undone = {entry.location: entry.order for entry in entries if entry.mark == "!" and entry.error is None}
    steps = [entry for entry in (*entries, *kept) if entry.compensation is not None and not entry.mark]
    steps = [step for step in steps if step.location in undone and step.order < undone[step.location]]
    return min([*failed, *(step.order for step in steps)], default=None)


def _with_carried(anew: frozenset[str], items: Sequence[Entry], start: tuple[int, int]) -> tuple[int, int]:
    """Begins early enough that no item goes which carries results from before: they would go with it."""
    carriers = [item for item in items if item.carried]
    straddling = [
        item for item in carriers if item.carried[0].order < start and (item.order >= start or _spent(item, anew))
    ]
    return min([start, *(item.carried[0].order for item in straddling)])


def _anew(run: Run, entries: Sequence[Entry], start: tuple[int, int]) -> frozenset[str]:
    """Locations of what is tried anew: what failed, and calls and children under way, which the end of the run has closed."""
    kept = {e.location for e in entries if not e.mark and (e.error is None or e.order < start)}
    return frozenset(run.failed_at) | ({e.location for e in entries if _is_closed_by_the_end(e)} - kept)


def _is_closed_by_the_end(opened: Entry) -> bool:
    if not opened.mark.startswith("?"):
        return False
    return opened.kind == "call" or (opened.kind == "child" and child_start_from(opened.value).close == "cancel")


def _spent(item: Entry, anew: frozenset[str]) -> bool:
    """Whether it is a failed attempt of an operation that is tried anew, or says that it was dispatched."""
    return item.mark.startswith(("@", "?")) and not is_start(item) and item.location in anew


def _cut(ports: Ports, run: Run, entries: Sequence[Entry], cut: Cut, given_up: Collection[str]) -> None:
    """Messages go back first: a retry that is cut short here has consumed them still, one that is repeated returns them."""
    gone = [entry for entry in entries if cut.covers(entry.order)]
    dispatches = {entry.key for entry in gone if entry.mark.startswith("?") or entry.kind == "start"}
    spent = [m for entry in gone for m in entry.messages if _is_spent_report(run, entry, m, dispatches)]
    spent = [message for message in spent if message.id not in given_up]
    returned = [message for entry in gone for message in entry.messages if message not in spent]
    unread = _unread_failures(ports, run, {*(m.name for m in spent), *_anew(run, entries, (cut.epoch, cut.n))})
    if spent or unread:
        ports.store.delete_messages(run.id, [message.id for message in (*spent, *unread)])
    for message in returned:
        ports.store.put_message(run.id, message)
    ports.store.record_cut(run.id, epoch=run.epoch, cut=cut, unburied=[message.id for message in returned])
    ports.store.delete_entries(run.id, [e.key for e in gone if not outlives_cuts(e)], epoch=run.epoch)


def _is_spent_report(run: Run, entry: Entry, message: StoredMessage, gone: Collection[str]) -> bool:
    """Whether the message reports the failure that is to be got over, or is about an attempt that does not count any more."""
    if message.kind == "result" and (entry.error is not None or f"{entry.location}?{entry.attempts}" in gone):
        return True
    if message.kind == "child" and not {message.name, f"{message.name}?1"}.isdisjoint(gone):
        return True  # which run is started or adopted now is decided anew
    return entry.key in run.failed_at and message.kind in REPORTS


def _unread_failures(ports: Ports, run: Run, locations: Collection[str]) -> Sequence[StoredMessage]:
    """Failures of children, told while the run was over, that come before what is tried anew at these locations."""
    pages = pages_of(ports.store, run.id, mailbox_only=True) if locations else ()
    messages = [m for page in pages for m in page.messages if m.kind == "child" and m.name in locations]
    ends = [(message, ended_from(message.body).status) for message in messages]
    return [message for message, status in ends if status in TERMINAL and status != "completed"]


def _retry_children(ports: Ports, run: Run, entries: Sequence[Entry]) -> frozenset[str]:
    """A child whose failure was met through its handle is retried itself: nothing starts it anew.

    Gives the ids of the messages about those that cannot be: the parent is told of them again.
    """
    dispatched = {entry.location for entry in entries if entry.mark.startswith("?")}
    failed = [e for e in entries if e.key in run.failed_at and e.kind == "child" and e.location not in dispatched]
    given_up: set[str] = set()
    for message in (message for entry in failed for message in entry.messages):
        child = ended_from(message.body).run_id
        try:
            retry(ports, child)
        except (RunNotFound, RunEnded, RetryRefused):
            run_of_child = ports.store.get(child)
            if run_of_child is None or run_of_child.status != "completed":
                given_up.add(message.id)
    return frozenset(given_up)


def _forget_attempts(ports: Ports, run: Run, entries: Sequence[Entry], cut: Cut) -> None:
    """A step that failed is tried as often as if it were new, and so is an undo that failed, if there is another rollback."""
    failed = {entry.location for entry in entries if entry.mark == "!" and entry.error is not None}
    anew = _anew(run, entries, (cut.epoch, cut.n))
    attempts = [e.key for e in entries if _spent(e, anew) or (e.mark.startswith("!") and e.location in failed)]
    ports.store.delete_entries(run.id, attempts, epoch=run.epoch)


def _forget_submissions(ports: Ports, run: Run, entries: Sequence[Entry]) -> None:
    """A callback that failed is submitted again: nobody would answer the submission that has come to nothing.

    Its failure goes first: with a result of what was never submitted the history would make no sense.
    """
    callbacks = {e.location for e in entries if e.key in run.failed_at and e.kind == "callback"}
    submissions = {location + SUBMISSION for location in callbacks}
    keys = [*sorted(callbacks), *(e.key for e in entries if e.location in submissions)]
    ports.store.delete_entries(run.id, keys, epoch=run.epoch)


def _suspended(run: Run, cut: Cut, now: float) -> Settlement:
    """Due at once, with its whole time before it again, and so its waits."""
    started_at = run.created_at if run.started_at is None else run.started_at
    return Settlement(
        status="suspended", at=now, started_at=started_at, due_at=now, armed=run.armed, reason="retried",
        waits=(retried(now, (*run.cuts, cut)),),
        python=run.python, deadline=None if run.deadline is None else now + run.deadline - started_at,
    )  # fmt: skip
