"""A run that the caller knows the workflow of, so that its output has a type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, overload

from typing_extensions import TypeVar

from durable.channels import Signal, StateKey, Update
from durable.errors import RunNotFound
from durable.model.duration import Duration
from durable.model.run import Status

if TYPE_CHECKING:
    from durable.client.client import CancelMode, Client
    from durable.client.updating import UpdateHandle
    from durable.definitions import Workflow

T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class RunHandle(Generic[R_co]):
    """One run; every method asks for its state as it is then."""

    __slots__ = ("_client", "accepted", "id", "workflow")

    def __init__(
        self, client: Client, run_id: str, workflow: Workflow[Any, R_co] | None, *, accepted: bool = False
    ) -> None:
        self._client = client
        self.id = run_id
        self.workflow = workflow
        self.accepted = accepted
        """Whether its start is on its way, so that it counts as pending as long as there is no record of it."""

    def result(self, *, timeout: Duration | None = None) -> R_co:
        """The output, as soon as the run has completed; see `Client.result`."""
        return self._client.result(self, timeout=timeout)

    def status(self) -> Status:
        """The status at this moment."""
        try:
            return self._client.get(self.id).status
        except RunNotFound:
            if self.accepted:
                return "pending"
            raise

    @overload
    def send(self, signal: Signal[T], body: T, /, *, id: str | None = None) -> str: ...
    @overload
    def send(self, name: str, body: object, /, *, id: str | None = None) -> str: ...
    def send(self, signal: Any, body: Any, /, *, id: str | None = None) -> str:
        """Sends a message; see `Client.send`."""
        return self._client.send(self.id, signal, body, id=id)

    @overload
    def update(
        self, update: Update[A, R], arg: A, /, *, timeout: Duration | None = None, id: str | None = None
    ) -> R: ...
    @overload
    def update(self, name: str, arg: object, /, *, timeout: Duration | None = None, id: str | None = None) -> Any: ...
    def update(self, update: Any, arg: Any, /, *, timeout: Duration | None = None, id: str | None = None) -> Any:
        """Sends an update and gives the response; see `Client.update`."""
        return self._client.update(self.id, update, arg, timeout=timeout, id=id)

    @overload
    def send_update(self, update: Update[A, R], arg: A, /, *, id: str | None = None) -> UpdateHandle[R]: ...
    @overload
    def send_update(self, name: str, arg: object, /, *, id: str | None = None) -> UpdateHandle[Any]: ...
    def send_update(self, update: Any, arg: Any, /, *, id: str | None = None) -> UpdateHandle[Any]:
        """Sends an update; see `Client.send_update`."""
        return self._client.send_update(self.id, update, arg, id=id)

    @overload
    def get_state(self, key: StateKey[T], /) -> T | None: ...
    @overload
    def get_state(self, key: str, /) -> Any: ...
    def get_state(self, key: Any, /) -> Any:
        """What the run has published under the key; see `Client.get_state`."""
        return self._client.get_state(self.id, key)

    def cancel(self, mode: CancelMode = "graceful") -> None:
        """Ends the run; see `Client.cancel`."""
        self._client.cancel(self.id, mode)

    def __repr__(self) -> str:
        return f'<run "{self.id}">'
