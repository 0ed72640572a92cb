"""Ends the tasks of a run that is being suspended, so that their clean-up code runs once and in order."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
from asyncio import tasks
from typing import Any, Final

from durable.errors import RunSuspended
from durable.loop import Running, WorkflowLoop, WorkflowTask

_ROUNDS: Final = 50
"""How often a coroutine may go on after RunSuspended before it is given up."""


def _keep_for_ever(coro: object) -> None:
    """Leaks a coroutine that swallows everything.

    Dropped, it would be closed by the garbage collector, in any thread and at the latest when the interpreter ends,
    and would run on for ever.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(coro))


def unwind(loop: WorkflowLoop, *, ended: bool) -> list[str]:
    """Throws RunSuspended into every task, newest first; returns what a person should read.

    Once the workflow has ended, nobody will look at the errors of its other tasks any more: they are among it.

    Not `coro.close()`: where clean-up waits again, that strands the inner frame and feeds a RuntimeError into the
    `except Exception` of the outer one.
    """
    if loop.closing is not None:
        return []
    loop.closing = "suspended"
    texts: list[str] = []
    with Running(loop):
        for task in sorted(asyncio.all_tasks(loop) | _finished(loop), key=_number, reverse=True):
            quiet: Any = task
            quiet._log_destroy_pending = False  # noqa: SLF001  it is abandoned on purpose
            if task.done():
                if ended and quiet._log_traceback:  # noqa: SLF001  set until someone asks for the error
                    texts.append(
                        f"task {task.get_name()} failed and nobody awaited it: {type(task.exception()).__qualname__}"
                    )
                quiet._log_traceback = False  # noqa: SLF001  the run goes on in another turn, and so does its error
            elif (text := _end(loop, task)) is not None:
                texts.append(text)
    for task in loop.tasks.values():
        tasks._unregister_task(task)  # noqa: SLF001  asyncio looks at all it knows whenever a run is suspended
    loop.ready.clear()
    loop.tasks.clear()
    return texts


def _finished(loop: WorkflowLoop) -> set[asyncio.Task[Any]]:
    return set(loop.tasks.values())


def _number(task: asyncio.Task[Any]) -> int:
    return task.number if isinstance(task, WorkflowTask) else 0


def _end(loop: WorkflowLoop, task: asyncio.Task[Any]) -> str | None:
    coro: Any = task.get_coro()
    if _never_started(coro):
        coro.close()
        return None
    context = task.context if isinstance(task, WorkflowTask) else contextvars.copy_context()
    loop.suspensions = 0
    for _ in range(_ROUNDS):
        tasks._enter_task(loop, task)  # noqa: SLF001  clean-up code may ask for the current task
        try:
            context.run(coro.throw, RunSuspended())
        except (StopIteration, RunSuspended):
            return None
        except KeyboardInterrupt:
            raise
        except BaseExceptionGroup as error:
            rest = error.split(RunSuspended)[1]
            return None if rest is None else f"{_name(coro)} raised {_kinds(rest)} while its run was suspended"
        except BaseException as error:  # noqa: BLE001  whatever clean-up raises must not stop that of others
            return f"{_name(coro)} raised {type(error).__qualname__} while its run was suspended"
        finally:
            tasks._leave_task(loop, task)  # noqa: SLF001
    _keep_for_ever(coro)
    return f"{_name(coro)} swallows RunSuspended: catch Exception, not BaseException"


def _never_started(coro: Any) -> bool:
    """Whether none of the user's code is on the stack: a new coroutine, or an operation itself."""
    frame = getattr(coro, "cr_frame", None)
    if frame is None:
        return True
    return coro.cr_await is None and frame.f_lasti <= 0


def _name(coro: Any) -> str:
    return str(getattr(coro, "__qualname__", coro))


def _kinds(group: BaseExceptionGroup) -> str:
    """The classes alone: what errors say may be a secret, and this is for the log."""
    return f"{type(group).__qualname__}({', '.join(type(error).__qualname__ for error in group.exceptions)})"
