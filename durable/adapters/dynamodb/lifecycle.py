"""Run records on DynamoDB: who may work on a run, and how its turns and the run itself end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from durable.adapters.dynamodb import attributes as a
from durable.adapters.dynamodb import conditions, items, keys
from durable.adapters.dynamodb.requests import Failed
from durable.adapters.sizes import check_payload
from durable.errors import Fenced, StoreUnavailable
from durable.ports import Acquired, Exists, Held, Missing, NotRunnable, Settled, WakesMoved

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from durable.adapters.dynamodb.attributes import AttributeValue
    from durable.adapters.dynamodb.requests import Requests
    from durable.model.run import CancelMode, Run, Settlement, Watcher

NEAR_SECONDS: Final = 3600.0
"""A due time further off than this gives way to the lease's end when a turn begins."""

TRIES: Final = 4
"""How often a guess about the record is corrected before the run is left to a later try."""

_ONE: Final = {":one": a.number(1)}
_NEXT_EPOCH: Final = "#epoch = #epoch + :one"
_NO_LEASE: Final = dict.fromkeys(("lease_owner", "lease_until"))
_NEW: Final = {"ReturnValues": "ALL_NEW"}


class Lifecycle:
    """Leases and ends runs."""

    def __init__(self, requests: Requests, shards: int) -> None:
        self._requests = requests
        self._shards = shards

    def acquire(
        self, run_id: str, *, owner: str, now: float, lease_until: float, code_version: str, due_is_near: bool
    ) -> Acquired | Held | NotRunnable | Missing:
        """One request, or two where the guess about the due time is wrong."""
        values = {
            ":now": a.number(now),
            ":far": a.number(now + NEAR_SECONDS),
            ":blocked": a.text("blocked"),
            ":code_version": a.text(code_version),
            ":lease_until_": a.number(lease_until),
        }
        near = due_is_near
        for _ in range(TRIES):
            answer = self._requests.update(items.key(run_id), self._acquisition(run_id, owner, values, near=near))
            if not isinstance(answer, Failed):
                return Acquired(items.read_run(answer))
            if answer.old is None:
                return Missing()
            run = items.read_run(answer.old)
            refusal = _refusal(run, owner, now, code_version)
            if refusal is not None:
                return refusal
            near = run.due_at is None or run.due_at <= now + NEAR_SECONDS
        raise StoreUnavailable(f'run "{run_id}" changed between {TRIES} tries to acquire it')

    def reopen(
        self, run_id: str, *, owner: str, now: float, lease_until: float, any_ended: bool
    ) -> Acquired | Held | NotRunnable | Missing:
        """One request."""
        changes: dict[str, AttributeValue | None] = {
            "status": a.text("suspended"),
            "lease_owner": a.text(owner),
            "lease_until": a.number(lease_until),
            "updated_at": a.number(now),
            **self._due(run_id, lease_until),
            **dict.fromkeys(("outcome", "attention", "finished_at", "output", "output_stored", "error", "reason")),
            **dict.fromkeys(("ending", "cancel_requested", "outbox")),
        }
        condition, outcomes = conditions.ENDED, dict[str, "AttributeValue"]()
        if not any_ended:
            condition, outcomes = conditions.GIVEN_UP, {":failed": a.text("failed"), ":dead": a.text("dead")}
        condition = f"{condition} AND {conditions.STAYS}"
        arguments = conditions.update(changes, condition, _ONE | outcomes, _NEXT_EPOCH)
        answer = self._requests.update(items.key(run_id), arguments | _NEW)
        if not isinstance(answer, Failed):
            return Acquired(items.read_run(answer))
        if answer.old is None:
            return Missing()
        run = items.read_run(answer.old)
        if run.held_at(now):
            return Acquired(run) if run.lease_owner == owner else Held(run)
        return NotRunnable(run)

    def announce(self, run_id: str, *, now: float) -> bool:
        """One request."""
        arguments = conditions.update({}, conditions.HELD, {":now": a.number(now), **_ONE}, "#wakes = #wakes + :one")
        return not isinstance(self._requests.update(items.key(run_id), arguments), Failed)

    def settle(self, run_id: str, *, epoch: int, wakes: int | None, settlement: Settlement) -> Settled | WakesMoved:
        """One request."""
        answer = self._requests.update(items.key(run_id), self._settling(run_id, epoch, wakes, settlement, {}))
        return _unsettled(run_id, epoch, answer) if isinstance(answer, Failed) else Settled()

    def continue_as_new(
        self, run_id: str, *, epoch: int, wakes: int, settlement: Settlement, successor: Run, input: str | None
    ) -> Settled | WakesMoved | Exists:
        """One transaction."""
        check_payload("the input", successor.input)
        check_payload("the input", input)
        settling = self._settling(run_id, epoch, wakes, settlement, {"successor": a.text(successor.id)})
        record = {"Item": items.run_item(successor, self._shards), **conditions.guarded(conditions.ABSENT)}
        payload = {} if input is None else items.payload_item(successor.id, keys.payload_key("input", 0), input)
        reasons = self._requests.transact(
            {"Update": {"Key": items.key(run_id), **settling}},
            {"Put": record},
            *([{"Put": {"Item": payload}}] if payload else []),
        )
        if reasons is None:
            return Settled()
        if reasons[0] is not None:
            return _unsettled(run_id, epoch, reasons[0])
        if reasons[1] is None or reasons[1].old is None:
            raise StoreUnavailable(f'run "{successor.id}": what refused its creation is gone')
        return Exists(items.read_run(reasons[1].old))

    def release(self, run_id: str, *, epoch: int, now: float) -> None:
        """One request."""
        changes = {**self._due(run_id, now), "released_epoch": a.number(epoch), **_NO_LEASE}
        self._requests.update(
            items.key(run_id), conditions.update(changes, conditions.UNSETTLED, {":epoch": a.number(epoch)})
        )

    def request_cancel(self, run_id: str, *, mode: CancelMode, now: float) -> Run | None:
        """One request for a run at rest, two for one that is held or blocked: their due times stay as they are."""
        asked = "#cancel_requested = :mode"
        if mode == "graceful":
            asked = "#cancel_requested = if_not_exists(#cancel_requested, :mode)"
        values = {":mode": a.text(mode), ":now": a.number(now), ":blocked": a.text("blocked"), **_ONE}
        at_rest = True
        for _ in range(TRIES):
            arguments = conditions.update(
                self._due(run_id, now) if at_rest else {},
                conditions.AT_REST if at_rest else conditions.BUSY_OR_BLOCKED,
                values,
                asked,
                "#wakes = #wakes + :one",
            )
            answer = self._requests.update(items.key(run_id), arguments | _NEW)
            if not isinstance(answer, Failed):
                return items.read_run(answer)
            if answer.old is None:
                return None
            run = items.read_run(answer.old)
            if run.ended:
                return run
            at_rest = run.status != "blocked" and not run.held_at(now)
        raise StoreUnavailable(f'run "{run_id}" changed between {TRIES} tries to cancel it')

    def terminate(self, run_id: str, *, now: float, reason: str) -> Run | None:
        """One request."""
        changes: dict[str, AttributeValue | None] = {
            "status": a.text("cancelled"),
            "outcome": a.text("cancelled"),
            "reason": a.packed(reason),
            "updated_at": a.number(now),
            "finished_at": a.number(now),
            **_NO_LEASE,
            "outbox": a.text("terminate"),
            **self._due(run_id, now),
            **dict.fromkeys(("armed", "waiting_for", "attention", "ending")),
        }
        return self._change(run_id, conditions.update(changes, conditions.OPEN, _ONE, _NEXT_EPOCH))

    def watch(self, run_id: str, watched: str, watcher: Watcher) -> Run | None:
        """Two requests: the watcher's item comes before the look at the record."""
        self._requests.put(items.watcher_item(watched, watcher))
        arguments = conditions.update({"watched": a.flag(True)}, conditions.EXISTS, _ONE, "#wakes = #wakes + :one")
        return self._change(run_id, arguments)

    def watchers(self, watched: str) -> Sequence[Watcher]:
        """One request for each MB."""
        found = self._requests.pages(
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": a.text(keys.watchers(watched))},
            ConsistentRead=True,
        )
        return [items.read_watcher(item) for item in found]

    def clear_outbox(self, run_id: str, *, epoch: int, delete_at: float | None) -> None:
        """One request."""
        changes: dict[str, AttributeValue | None] = dict.fromkeys(("outbox", "due_at", "due_shard"))
        if delete_at is not None:
            changes |= {"due_at": a.number(delete_at), "due_shard": a.text(keys.ended_shard(run_id, self._shards))}
        condition = f"{conditions.ENDED} AND {conditions.MINE}"
        self._requests.update(items.key(run_id), conditions.update(changes, condition, {":epoch": a.number(epoch)}))

    def postpone_deletion(self, run_id: str, *, epoch: int, until: float) -> None:
        """One request."""
        condition = f"{conditions.OVER} AND {conditions.STAYS} AND attribute_exists(#due_at)"
        arguments = conditions.update({"due_at": a.number(until)}, condition, {":epoch": a.number(epoch)})
        self._requests.update(items.key(run_id), arguments)

    def mark_for_deletion(self, run_id: str, *, epoch: int, now: float) -> bool:
        """One request."""
        changes = {"deleting": a.flag(True), "due_shard": a.text(keys.ended_shard(run_id, self._shards))}
        values = {":epoch": a.number(epoch), ":now": a.number(now)}
        due = "#due_at = if_not_exists(#due_at, :now)"
        arguments = conditions.update(changes, conditions.OVER, values, due)
        return not isinstance(self._requests.update(items.key(run_id), arguments), Failed)

    def unblock(self, run_id: str, *, now: float) -> Run | None:
        """One request."""
        changes: dict[str, AttributeValue | None] = {
            "status": a.text("suspended"),
            "updated_at": a.number(now),
            **self._due(run_id, now),
            **dict.fromkeys(("reason", "attention")),
        }
        return self._change(run_id, conditions.update(changes, conditions.BLOCKED, {":blocked": a.text("blocked")}))

    def _acquisition(
        self, run_id: str, owner: str, values: Mapping[str, AttributeValue], *, near: bool
    ) -> dict[str, Any]:
        due = "if_not_exists(#due_at, :lease_until_)" if near else ":lease_until_"
        guess = conditions.DUE_IS_NEAR if near else conditions.DUE_IS_FAR
        return _NEW | conditions.update(
            {
                "lease_owner": a.text(owner),
                "lease_until": values[":lease_until_"],
                "due_shard": a.text(str(keys.shard_of(run_id, self._shards))),
            },
            f"{conditions.RUNNABLE} AND {guess}",
            {**values, **_ONE},
            _NEXT_EPOCH,
            f"#due_at = {due}",
            "#started_at = if_not_exists(#started_at, :now)",
        )

    def _settling(
        self,
        run_id: str,
        epoch: int,
        wakes: int | None,
        settlement: Settlement,
        more: Mapping[str, AttributeValue | None],
    ) -> dict[str, Any]:
        check_payload("the output", settlement.output)
        condition = conditions.UNSETTLED
        values = {":epoch": a.number(epoch)}
        if wakes is not None:
            condition = f"{condition} AND {conditions.UNSEEN}"
            values[":wakes"] = a.number(wakes)
        changes = items.settled_attributes(run_id, settlement, self._shards)
        changes |= {"clean_epoch": a.number(epoch), **_NO_LEASE, **more}
        return conditions.update(changes, condition, values)

    def _due(self, run_id: str, at: float) -> dict[str, AttributeValue]:
        return {"due_at": a.number(at), "due_shard": a.text(str(keys.shard_of(run_id, self._shards)))}

    def _change(self, run_id: str, arguments: Mapping[str, Any]) -> Run | None:
        answer = self._requests.update(items.key(run_id), {**arguments, **_NEW})
        item = answer.old if isinstance(answer, Failed) else answer
        return None if item is None else items.read_run(item)


def _refusal(run: Run, owner: str, now: float, code_version: str) -> Acquired | Held | NotRunnable | None:
    """Why a run could not be acquired; None if only the guess about its due time was wrong."""
    if run.ended:
        return NotRunnable(run)
    if run.held_at(now):
        return Acquired(run) if run.lease_owner == owner else Held(run)
    if run.status == "blocked" and run.code_version == code_version:
        return NotRunnable(run)
    return None


def _unsettled(run_id: str, epoch: int, refused: Failed) -> Settled | WakesMoved:
    """Why a turn could not settle."""
    run = None if refused.old is None else items.read_run(refused.old)
    if run is None or run.epoch != epoch:
        raise Fenced(run_id, epoch)
    if run.lease_owner is not None:
        return WakesMoved(run.wakes, run)
    if run.clean_epoch != epoch:
        raise Fenced(run_id, epoch)
    return Settled()  # the reply to an earlier try was lost
