"""Actors in threads of which exactly one runs at a time: at every port call the baton may go to another one.

Whoever stops asks the scheduler itself who goes on, so no thread is switched while the same actor goes on; threads
are what a simulation spends most of its time on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from durable.testing.faults import InvocationKilled

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True)
class _Thread:
    """A thread that lives on between actors; starting one for each would cost more than what it does."""

    go: Lock = field(default_factory=Lock)
    work: Callable[[], None] | None = None

    def start(self) -> None:
        self.go.acquire()
        Thread(target=self._serve, name="simulated", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self.go.acquire()
            work, self.work = self.work, None
            if work is not None:
                work()


class Stage:
    """Lends threads to actors and passes the baton."""

    def __init__(self) -> None:
        self._idle: list[_Thread] = []
        self._director = Lock()
        self._director.acquire()
        self._choose: Callable[[], Actor | None] = _nobody
        self._failure: BaseException | None = None

    def play(self, choose: Callable[[], Actor | None]) -> None:
        """Lets actors go on until `choose` names none; raises what it raises, in whatever thread it was called.

        `choose` is called whenever an actor has come to a port call or to its end, and before the first.
        """
        self._choose, self._failure = choose, None
        self._hand_over(self._next())
        self._director.acquire()
        self._choose = _nobody
        if self._failure is not None:
            raise self._failure

    def enter(self, body: Callable[[], Any]) -> Actor:
        """A new actor that has not run yet."""
        if not self._idle:
            thread = _Thread()
            thread.start()
            self._idle.append(thread)
        return Actor(self, self._idle.pop(), body)

    def end(self, actor: Actor) -> None:
        """Kills an actor where it stands, outside of a play."""
        actor.die()
        self._hand_over(actor)
        self._director.acquire()

    def pass_on(self, actor: Actor) -> None:
        """Called in the actor's own thread: returns when it is its turn again."""
        chosen = self._next()
        if chosen is not actor:
            self._hand_over(chosen)
            actor.thread.go.acquire()

    def leave(self, actor: Actor) -> None:
        """Called in the actor's own thread, at its end."""
        self._idle.append(actor.thread)
        self._hand_over(self._next())

    def _next(self) -> Actor | None:
        try:
            return self._choose()
        except BaseException as failure:  # noqa: BLE001 - raised again in the thread of `play`
            self._failure = failure
            return None

    def _hand_over(self, actor: Actor | None) -> None:
        (self._director if actor is None else actor.thread.go).release()


class Actor:
    """One activity, which stands before a port call whenever another one runs."""

    def __init__(self, stage: Stage, thread: _Thread, body: Callable[[], Any]) -> None:
        self._stage = stage
        self._body = body
        self.thread = thread
        thread.work = self._run
        self.killed = False
        """Whether it died before it could finish."""
        self.before = ""
        """The port call that comes next."""
        self.finished = False
        self.answer: Any = None
        self.error: BaseException | None = None

    def die(self) -> None:
        """When it goes on, it ends where it stands; its port call does not happen."""
        self.killed = True

    def pause(self, before: str) -> None:
        """Called by the actor itself: others may go on before it does, and it may die here."""
        if not self.killed:
            self.before = before
            self._stage.pass_on(self)
        if self.killed:
            raise InvocationKilled

    def _run(self) -> None:
        try:
            if not self.killed:
                self.answer = self._body()
        except InvocationKilled:
            self.killed = True
        except BaseException as error:  # noqa: BLE001 - handed to the scheduler
            self.error = error
        self.finished = True
        self._stage.leave(self)


def _nobody() -> Actor | None:
    return None
