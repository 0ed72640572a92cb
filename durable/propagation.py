"""What is in the air where a run is started, carried to where its steps run: trace context, a tenant, a locale."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Protocol

from durable.model.headers import check_headers


class Carrier(Protocol):
    """A pair of functions: a class with two static methods, an object, or a module.

    Example:
        ```python
        @app.propagate
        class Tenant:
            @staticmethod
            def capture() -> dict[str, str]:
                return {"tenant": tenant.get()}

            @staticmethod
            @contextmanager
            def restore(headers: Mapping[str, str]) -> Iterator[None]:
                token = tenant.set(headers.get("tenant", ""))
                try:
                    yield
                finally:
                    tenant.reset(token)
        ```
    """

    def capture(self) -> Mapping[str, str]:
        """Called where a client starts something without naming headers: what is to travel with it."""
        ...

    def restore(self, headers: Mapping[str, str], /) -> AbstractContextManager[object]:
        """Entered around every attempt at a step; `headers` are all that the run has."""
        ...


class Carriers:
    """The carriers of an app, in the order of their registration."""

    def __init__(self) -> None:
        self._carriers: list[Carrier] = []

    def add(self, carrier: Carrier) -> None:
        """From now on it is asked too."""
        self._carriers.append(carrier)

    def headers(self, given: Mapping[str, str] | None) -> dict[str, str]:
        """The headers that travel: those given, or what the carriers capture here. Refuses what `check_headers` refuses."""
        if given is not None:
            return check_headers(given)
        captured: dict[str, str] = {}
        for carrier in self._carriers:
            captured |= carrier.capture()
        return check_headers(captured)

    def around(self, headers: Mapping[str, str], body: Callable[[], Any]) -> Callable[[], Any]:
        """The body of a step, sync or async, with what travelled restored while it runs."""
        if not self._carriers:
            return body
        if inspect.iscoroutinefunction(body):
            return lambda: self._awaited(headers, body())

        def call() -> Any:
            with self._restored(headers):
                value = body()
            # The thread that called it leaves here; what it has yet to do runs as a task, in a context of its own.
            return self._awaited(headers, value) if inspect.isawaitable(value) else value

        return call

    async def _awaited(self, headers: Mapping[str, str], value: Awaitable[Any]) -> Any:
        with self._restored(headers):
            return await value

    def _restored(self, headers: Mapping[str, str]) -> ExitStack:
        with ExitStack() as stack:
            for carrier in self._carriers:
                stack.enter_context(carrier.restore(headers))
            return stack.pop_all()
