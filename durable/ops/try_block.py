"""A try block: a scope whose failed operations are a value instead of an exception.

| state                      | what happens                                                               |
|----------------------------|----------------------------------------------------------------------------|
| called                     | claims its name                                                            |
| running                    | the body runs in the scope `name/`, in the task that awaits the block      |
| an operation in it failed  | `Failed`, if its source is one of `catch` and no rollback is asked for     |
| the body raised by itself  | that exception: a fault of the code is no outcome                          |
| over                       | `Ok` with what the body returned                                           |

It has no entry of its own: the failure that it returns is recorded with the operation that failed, so the body, which
is executed again on replay, comes to the same outcome.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from durable.journal import Journal, Scope
from durable.ops.blocks import failure_of, run_within, wants_rollback
from durable.ops.operation import Block, Host
from durable.values import Failed, Ok, Source


def try_block(host: Host, name: str, body: Callable[[], Awaitable[Any]], catch: Sequence[Source]) -> Block:
    """Awaited, gives `Ok` with the body's value, or `Failed`."""
    return Block(
        host, "block", name, lambda journal, scope, location: _run(journal, scope, location, body, frozenset(catch))
    )


async def _run(
    journal: Journal, scope: Scope, location: str, body: Callable[[], Awaitable[Any]], catch: frozenset[Source]
) -> Ok[Any] | Failed:
    try:
        return Ok(await run_within(journal, scope.within(f"{location}/"), body))
    except Exception as error:
        failed = failure_of(error)
        if failed is None or failed.source not in catch or wants_rollback(error):
            raise
        return failed
