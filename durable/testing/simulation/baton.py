"""Actors in threads of which exactly one runs at a time: each stops at every port call until the scheduler resumes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from durable.testing.faults import InvocationKilled

if TYPE_CHECKING:
    from collections.abc import Callable

NOT_WAITING: Final = ""


@dataclass(slots=True)
class _Thread:
    """A thread that lives on between actors; starting one for each invocation would cost more than the invocation."""

    go: Lock = field(default_factory=Lock)
    back: Lock = field(default_factory=Lock)
    work: Callable[[], None] | None = None

    def start(self) -> None:
        self.go.acquire()
        self.back.acquire()
        Thread(target=self._serve, name="simulated-invocation", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self.go.acquire()
            if self.work is not None:
                self.work()
            self.work = None
            self.back.release()


class Stage:
    """Lends threads to actors and takes them back."""

    def __init__(self) -> None:
        self._idle: list[_Thread] = []

    def enter(self, body: Callable[[Actor], Any]) -> Actor:
        """A new actor that has not run yet."""
        return Actor(self, body)

    def lend(self) -> _Thread:
        """A thread that waits for work."""
        if self._idle:
            return self._idle.pop()
        thread = _Thread()
        thread.start()
        return thread

    def take_back(self, thread: _Thread) -> None:
        """The thread waits for other work."""
        self._idle.append(thread)


class Actor:
    """One activity. It runs only inside `resume`, and stands before a port call between one resume and the next."""

    def __init__(self, stage: Stage, body: Callable[[Actor], Any]) -> None:
        self._stage = stage
        self._body = body
        self._thread = stage.lend()
        self._thread.work = self._run
        self._killed = False
        self.before: str = NOT_WAITING
        """The port call that comes next."""
        self.finished = False
        self.answer: Any = None
        self.error: BaseException | None = None

    @property
    def killed(self) -> bool:
        """Whether it died before it could finish."""
        return self._killed

    def resume(self) -> None:
        """Lets the actor make its port call and run up to the next one, or to its end."""
        self._thread.go.release()
        self._thread.back.acquire()
        if self.finished:
            self._stage.take_back(self._thread)

    def kill(self) -> None:
        """Ends the actor where it stands; its port call does not happen."""
        self._killed = True
        self.resume()

    def pause(self, before: str) -> None:
        """Called by the actor itself: stands until it is resumed, or dies there."""
        if self._killed:
            raise InvocationKilled
        self.before = before
        self._thread.back.release()
        self._thread.go.acquire()
        if self._killed:
            raise InvocationKilled

    def _run(self) -> None:
        try:
            if not self._killed:
                self.answer = self._body(self)
        except InvocationKilled:
            self._killed = True
        except BaseException as error:  # noqa: BLE001 - handed to the scheduler's thread, which raises it
            self.error = error
        finally:
            self.finished = True
