"""What a loop can do and workflow code must not: I/O, threads, signals, and tasks that start in the order of a set."""

from __future__ import annotations

import asyncio
from asyncio import tasks
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from durable.errors import Misuse, NotAllowedInWorkflow

if TYPE_CHECKING:
    from types import CodeType, FrameType

_REFUSED: Final = {
    "threads and executors": "run_in_executor set_default_executor call_soon_threadsafe shutdown_default_executor",
    "network I/O": "getaddrinfo getnameinfo create_connection create_server create_unix_connection create_unix_server "
    "create_datagram_endpoint sendfile start_tls connect_accepted_socket sock_recv sock_recv_into sock_recvfrom "
    "sock_recvfrom_into sock_sendall sock_sendto sock_connect sock_accept sock_sendfile",
    "I/O": "connect_read_pipe connect_write_pipe subprocess_shell subprocess_exec add_reader remove_reader add_writer "
    "remove_writer",
    "signals": "add_signal_handler remove_signal_handler",
    "the event loop itself": "set_task_factory set_exception_handler set_debug run_forever run_until_complete stop close",
}


def _refusal(method: str, what: str) -> Callable[..., Any]:
    def refuse(self: RefusingLoop, *args: Any, **_kwargs: Any) -> Any:
        for argument in args:
            if isinstance(argument, Coroutine):
                argument.close()
        if what == "the event loop itself":
            raise self.fail(
                NotAllowedInWorkflow(f"loop.{method}()", "it runs on a loop of its own; leave the loop alone")
            )
        raise self.fail(NotAllowedInWorkflow(f"{what} (loop.{method})"))

    refuse.__name__ = method
    return refuse


class RefusingLoop(asyncio.AbstractEventLoop):
    """Refuses everything that reaches outside, with an error that says where it belongs."""

    def fail(self, misuse: Misuse) -> Misuse:
        """Gives the misuse back, to be raised, after noting it."""
        raise NotImplementedError

    def check_order(self, caller: FrameType) -> None:
        """Refuses tasks that `as_completed` makes: it takes coroutines out of a set, so they would start in any order."""
        if caller.f_code not in _ENSURE_FUTURE:
            return
        frame: FrameType | None = caller
        while frame is not None and frame.f_code in _ENSURE_FUTURE:
            frame = frame.f_back
        if frame is None or frame.f_code not in _AS_COMPLETED:
            return
        for maker in (frame, frame.f_back):
            _close_coroutines(maker)
        raise self.fail(
            NotAllowedInWorkflow(
                "asyncio.as_completed over coroutines",
                "it would start them in the order of a set. Create the tasks first: "
                "asyncio.as_completed([asyncio.create_task(c) for c in coroutines])",
            )
        )


for _what, _methods in _REFUSED.items():
    for _method in _methods.split():
        setattr(RefusingLoop, _method, _refusal(_method, _what))


def _nested(code: CodeType) -> set[CodeType]:
    return {code} | {const for const in code.co_consts if hasattr(const, "co_code")}


def _as_completed_codes() -> set[CodeType]:
    iterator = getattr(tasks, "_AsCompletedIterator", None)  # 3.13
    codes = _nested(tasks.as_completed.__code__)
    return codes if iterator is None else codes | _nested(iterator.__init__.__code__)


_ENSURE_FUTURE: Final = {
    function.__code__
    for function in (getattr(tasks, "_ensure_future", None), tasks.ensure_future)
    if function is not None
}
_AS_COMPLETED: Final = _as_completed_codes()


def _close_coroutines(frame: FrameType | None) -> None:
    """Closes what will never run, so that no "never awaited" warning distracts from the error."""
    if frame is None:
        return
    for value in frame.f_locals.values():
        if isinstance(value, (list, tuple, set)):
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                if isinstance(item, Coroutine):
                    item.close()
