"""What goes wrong on purpose: crashes, freezes and refusals at port calls; lost, late and doubled deliveries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from durable.errors import StoreUnavailable
from durable.model.duration import seconds
from durable.testing.interception import CALL_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from durable.model.duration import Duration


class InvocationKilled(BaseException):
    """The process of this invocation is gone: nothing that it would have done after this point happens."""

    def __init__(self) -> None:
        super().__init__("the invocation was killed by the test; let this pass: catch Exception, not BaseException")


@dataclass(slots=True)
class Invocation:
    """One life of a function: from its deliveries to its answer, or to its death."""

    killed: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryFault:
    """What happens to the next delivery."""

    kind: Literal["duplicate", "delay", "drop", "reorder"]
    delay: float = 0.0


@dataclass(slots=True)
class _AtCall:
    """Something that happens at a certain port call, counted over all invocations."""

    number: int
    after: bool
    act: Callable[[Invocation], object]


@dataclass(slots=True)
class _AtName:
    """Something that happens at the next call of one port method."""

    name: str
    after: bool


@dataclass(slots=True)
class Faults:
    """The plan of what goes wrong, in the order in which it was asked for. An empty plan only lists the calls."""

    pass_time: Callable[[float], None]
    """Lets the world go on for so many seconds while the invocation that calls stands still."""
    calls: list[str] = field(default_factory=list[str])
    """Every port call of the orchestrators, as "port.method"."""
    used: bool = False
    """Whether anything was ever planned."""
    _at_call: list[_AtCall] = field(default_factory=list[_AtCall])
    _at_name: list[_AtName] = field(default_factory=list[_AtName])
    _deliveries: list[DeliveryFault] = field(default_factory=list[DeliveryFault])

    def duplicate_next(self) -> None:
        """The next delivery arrives twice, the second time after the first was handled."""
        self._plan_delivery(DeliveryFault("duplicate"))

    def delay_next(self, duration: Duration) -> None:
        """The next delivery arrives so much later; what stands behind it in its queue's order waits with it."""
        self._plan_delivery(DeliveryFault("delay", seconds(duration)))

    def drop_next(self) -> None:
        """The next delivery never arrives, as if its queue had lost it."""
        self._plan_delivery(DeliveryFault("drop"))

    def reorder_next(self) -> None:
        """The next delivery arrives after those that are due behind it, as far as its queue may do that.

        Messages of one run stay in their order; what comes from the timers may come in any. Stays planned until there is
        something to swap.
        """
        self._plan_delivery(DeliveryFault("reorder"))

    def fail_next_call(self, name: str, *, after: bool = False) -> None:
        """The next call of a port method, "store.settle" for one, raises StoreUnavailable, before or after its effect."""
        if name not in CALL_NAMES:
            raise ValueError(f'there is no port call "{name}"; there are {", ".join(sorted(CALL_NAMES))}')
        self.used = True
        self._at_name.append(_AtName(name, after))

    def freeze(self, duration: Duration, *, at: int = 1) -> None:
        """The invocation that makes the `at`-th port call from now stands still before it, while the world goes on."""
        length = seconds(duration)
        self._plan(at, after=False, act=lambda _: self.pass_time(length))

    def meanwhile(self, act: Callable[[], object], *, at: int = 1) -> None:
        """Something happens, a message or a cancellation for one, just before the `at`-th port call from now."""
        self._plan(at, after=False, act=lambda _: act())

    def crash_at(self, n: int, *, after: bool = False) -> None:
        """Kills the invocation at its n-th port call from now, before or after the call's effect."""
        self._plan(n, after=after, act=_kill)

    @property
    def pending(self) -> bool:
        """Whether something that was planned has not happened yet."""
        return bool(self._at_call or self._at_name or self._deliveries)

    def next_delivery(self) -> DeliveryFault | None:
        """What happens to the delivery that is about to be made."""
        return self._deliveries.pop(0) if self._deliveries else None

    def not_yet(self, fault: DeliveryFault) -> None:
        """Nothing could be done with this delivery: it happens to the next."""
        self._deliveries.insert(0, fault)

    def perform(self, invocation: Invocation, name: str, perform: Callable[[], Any]) -> Any:
        """Makes a port call of an invocation, with whatever was planned for it."""
        if invocation.killed:
            raise InvocationKilled
        self.calls.append(name)
        number = len(self.calls)
        self._happen(number, invocation, after=False)
        self._refuse(name, after=False)
        answer = perform()
        self._happen(number, invocation, after=True)
        self._refuse(name, after=True)
        return answer

    def _plan(self, n: int, *, after: bool, act: Callable[[Invocation], object]) -> None:
        if n < 1:
            raise ValueError(f"port calls are counted from 1, not {n}")
        self.used = True
        self._at_call.append(_AtCall(len(self.calls) + n, after, act))

    def _plan_delivery(self, fault: DeliveryFault) -> None:
        self.used = True
        self._deliveries.append(fault)

    def _happen(self, number: int, invocation: Invocation, *, after: bool) -> None:
        for planned in [one for one in self._at_call if one.number == number and one.after == after]:
            self._at_call.remove(planned)
            planned.act(invocation)

    def _refuse(self, name: str, *, after: bool) -> None:
        for planned in self._at_name:
            if planned.name == name and planned.after == after:
                self._at_name.remove(planned)
                when = "after" if after else "before"
                raise StoreUnavailable(f"{name} was made to fail {when} its effect")


def _kill(invocation: Invocation) -> None:
    invocation.killed = True
    raise InvocationKilled
