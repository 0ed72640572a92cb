"""A whole deployment in memory with virtual time: the client that tests of workflows use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar, overload

from durable.client import Client, RunHandle
from durable.engine.options import EngineOptions
from durable.engine.steps import ThreadStepRunner
from durable.errors import Deadlock, RunNotFound
from durable.model.duration import seconds as to_seconds
from durable.testing import crash_matrix
from durable.testing.mocks import Mock, Mocks
from durable.testing.services import in_memory
from durable.testing.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from durable.adapters.memory.tables import MemoryTable
    from durable.app import App
    from durable.definitions import RemoteStep, Workflow
    from durable.engine.steps import StepRunner
    from durable.model.duration import Duration
    from durable.model.hook import HookResponse
    from durable.testing.crash_matrix import CrashMatrix, Script
    from durable.testing.faults import Faults
    from durable.testing.services import Services

I = TypeVar("I")  # noqa: E741 - the name that readers of the signatures expect
R = TypeVar("R")
T = TypeVar("T")


class TestEnvironment(Client):
    """A client whose runs proceed when a test says so; nothing happens in between.

    `start` and `send` only put messages into queues. `handle.result()` delivers them, and skips time, until the run has
    ended; `advance` does so for a stretch of time; `run_until_idle` delivers what is due now.

    Example:
        ```python
        with TestEnvironment(app) as env:
            env.mock(charge).returns("receipt-1")
            handle = env.start(fulfil, Order(id="o-1"), id="o-1")
            env.advance(days=1)
            handle.send(APPROVE, Approve(by="ann"))
            assert handle.result() == Receipt("receipt-1")
        ```
    """

    __test__ = False

    def __init__(
        self,
        app: App[Any],
        /,
        *,
        services: Services | None = None,
        options: EngineOptions | None = None,
        steps: Callable[[], StepRunner] = ThreadStepRunner,
        mocks: Mocks | None = None,
    ) -> None:
        self._mocks = mocks or Mocks()
        self._steps = steps
        self._options = options
        self.world = World(
            app,
            services or in_memory(),
            options=options or EngineOptions(parallel_runs=1),
            mocks=self._mocks,
            new_runner=steps,
        )
        super().__init__(app, self.world.ports)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exc: object) -> None:
        """Raises AssertionError where a stand-in was given a name that no step has, unless the test has failed anyway."""
        if kind is None:
            self._mocks.check_names(self.app)

    # Time

    @property
    def now(self) -> datetime:
        """Virtual time, in UTC."""
        return datetime.fromtimestamp(self.world.services.clock.now(), UTC)

    def run_until_idle(self) -> None:
        """Delivers whatever is due now, and what comes of it; does not skip time."""
        self.world.settle_down()

    def advance(
        self,
        duration: Duration | None = None,
        /,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> None:
        """Passes time; whatever becomes due meanwhile happens at its moment."""
        whole = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()
        self.world.pass_time(whole + (0.0 if duration is None else to_seconds(duration)))

    def result(self, run: RunHandle[Any] | str, /, *, timeout: Duration | None = None) -> Any:
        """The run's output, once it has ended; time is skipped until then, at most `timeout` of it.

        Raises what `Client.result` raises; TimeoutError after `timeout`; and `Deadlock`, naming what the run waits for,
        when nothing is on its way that could wake it.
        """
        run_id = run if isinstance(run, str) else run.id
        end = None if timeout is None else self.world.services.clock.now() + to_seconds(timeout)
        while not self._has_result(run):
            moment = self.world.next_event_at()
            if moment is None:
                raise Deadlock(self._why_stuck(run_id))
            if end is not None and moment > end:
                self.world.services.clock.advance_to(end)
                break
            self.world.skip_to(moment)
        return super().result(run, timeout=0)

    def _until(self, run_id: str, look: Callable[[], T | None], timeout: float | None) -> T | None:
        """As the client's own waiting, but time is skipped. A run that nothing can wake is a `Deadlock`."""
        end = None if timeout is None else self.world.services.clock.now() + timeout
        self.world.settle_down()
        while (found := look()) is None:
            moment = self.world.next_event_at()
            if end is not None and (moment is None or moment > end):
                self.world.services.clock.advance_to(end)
                return look()
            if moment is None:
                raise Deadlock(self._why_stuck(run_id))
            self.world.skip_to(moment)
        return found

    def _has_result(self, run: RunHandle[Any] | str) -> bool:
        self.world.settle_down()
        try:
            record = self._record(run)
        except RunNotFound:
            return True
        if record is None:
            return False
        if record.ended:
            return True
        return record.status == "blocked" and not self.world.sweep_is_due_after_deployment

    def _why_stuck(self, run_id: str) -> str:
        record = self.get(run_id)
        waits_for = record.reason or ", ".join(record.waiting_for) or record.status
        return (
            f'run "{run_id}" waits for {waits_for}, and nothing that could wake it is on its way. '
            "Send what it waits for before asking for its result."
        )

    # Stand-ins

    @overload
    def mock(self, fn: RemoteStep[..., R] | Workflow[Any, R], /) -> Mock[R]: ...
    @overload
    def mock(self, fn: Callable[..., Awaitable[R]], /) -> Mock[R]: ...
    @overload
    def mock(self, fn: Callable[..., R], /) -> Mock[R]: ...
    @overload
    def mock(self, fn: str, /) -> Mock[Any]: ...
    def mock(self, fn: Any, /) -> Mock[Any]:
        """Puts a stand-in in the place of a step's body, found by the function or by the step's name."""
        return self._mocks.add(getattr(fn, "fn", fn))

    def call_webhook(self, url: str, body: object = None, /, *, id: str | None = None) -> HookResponse:
        """Calls a webhook by its address, or its token, with JSON data; what its caller is answered."""
        return super().call_webhook(url.rpartition("/")[2], body, id=id)

    def table(self, name: str, *key: str) -> MemoryTable:
        """One of the app's own tables for `ctx.transact`, in memory; `key` names its key attributes (`pk` by default)."""
        return self.world.services.memory.tables.declare(name, key)

    # The deployment

    def restart(self) -> None:
        """Makes every container cold: the next turns start from the stored history."""
        self.world.restart()

    def deploy(self, app: App[Any]) -> None:
        """Puts other code under the open runs; blocked ones are tried again within a minute."""
        self.world.deploy(app)
        self.app = app
        self.ports = self.world.ports

    # What goes wrong

    @property
    def faults(self) -> Faults:
        """Plans what goes wrong with the next deliveries and port calls."""
        return self.world.faults

    @property
    def calls(self) -> Sequence[str]:
        """Every port call that orchestrators have made, as "port.method"."""
        return self.world.faults.calls

    @property
    def repairs(self) -> int:
        """Runs that maintenance had to wake because nothing else did; 0 while nothing goes wrong."""
        return self.world.repairs

    def crash_at(self, n: int, *, after: bool = False) -> None:
        """Kills the invocation at its n-th port call from now, before or after the call has its effect."""
        self.world.faults.crash_at(n, after=after)

    def outage(self, duration: Duration) -> None:
        """Passes time with everything down: no delivery, no timer, no maintenance."""
        self.world.go_down(to_seconds(duration))

    @overload
    def run_crash_matrix(self, workflow: Workflow[None, Any], /, *, script: Script = ...) -> CrashMatrix: ...
    @overload
    def run_crash_matrix(self, workflow: Workflow[I, Any], input: I, /, *, script: Script = ...) -> CrashMatrix: ...
    def run_crash_matrix(
        self, workflow: Workflow[Any, Any], input: Any = None, /, *, script: Script = crash_matrix.no_messages
    ) -> CrashMatrix:
        """Runs the workflow once per port call, dying or standing still there, and compares with an untroubled run.

        Each run has an environment of its own with this one's app and stand-ins. `script` sends messages: it is called
        with the environment and the handle after the start. Raises AssertionError naming the calls at which the
        outcome or the history is another one.
        """

        def fresh() -> TestEnvironment:
            return TestEnvironment(self.app, options=self._options, steps=self._steps, mocks=self._mocks.fresh())

        return crash_matrix.run(fresh, workflow, input, script=script)
