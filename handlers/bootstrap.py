"""What a container builds once and every invocation uses: settings, app, clients, and the parts of the engine."""

from __future__ import annotations

import contextlib
import importlib
import logging
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final, cast

from durable.app import App
from durable.aws import Clients, aws_ports, make_clients, task_source
from durable.settings import Settings
from handlers import logs
from handlers.code_version import code_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from durable.client import Client
    from durable.engine.claims import TaskClaims
    from durable.engine.maintenance import Maintenance
    from durable.engine.orchestrator import Orchestrator
    from durable.engine.worker import RemoteWorker


log = logging.getLogger("durable")

SWEEP_THREADS: Final = 8
"""A sweep waits for DynamoDB most of its time."""


class AppNotFound(Exception):
    """The setting names an App that cannot be had."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f'the app "{name}" cannot be loaded: {reason}')


class Container:
    """The parts are made when they are first asked for, so that each function pays for its own only."""

    def __init__(self, settings: Settings, clients: Clients, app: App[Any]) -> None:
        self.settings = settings
        self.app = app
        self.clients = clients
        self.sqs = clients.sqs
        self.ports = aws_ports(settings, clients, codec=app.codec)
        self.code_version = settings.code_version or code_version(settings.app)
        self.queue_urls = (settings.runs_queue_url, settings.timers_queue_url)

    @cached_property
    def orchestrator(self) -> Orchestrator:
        """Takes turns."""
        from durable.engine.orchestrator import Orchestrator  # noqa: PLC0415 - the other functions do not need it

        return Orchestrator(self.app, self.ports, code_version=self.code_version)

    @cached_property
    def remote_worker(self) -> RemoteWorker:
        """Performs remote steps."""
        from durable.engine.worker import RemoteWorker  # noqa: PLC0415 - the same

        return RemoteWorker(self.app, self.ports)

    @cached_property
    def claims(self) -> TaskClaims:
        """Hands tasks to workers that are not written with this library."""
        from durable.engine.claims import TaskClaims  # noqa: PLC0415 - the same

        return TaskClaims(self.app, self.ports, partial(task_source, self.settings, self.clients))

    @cached_property
    def maintenance(self) -> Maintenance:
        """Finds what was not woken."""
        from durable.engine.maintenance import Maintenance  # noqa: PLC0415 - the same

        # It reads no payload, so it needs no codec, and no key.
        return Maintenance(
            aws_ports(self.settings, self.clients), code_version=self.code_version, parallel=SWEEP_THREADS
        )

    @cached_property
    def client(self) -> Client:
        """Starts and steers runs."""
        from durable.client import Client  # noqa: PLC0415 - the same

        return Client(self.app, self.ports)


@cache
def container() -> Container:
    """The container of this process; raises `InvalidInput` or `AppNotFound`, which say what is wrong with the deployment."""
    settings = Settings.from_environment()
    logs.install(settings)  # before the app is imported, which may have something to say
    return Container(settings, make_clients(), load_app(settings.app))


def prepare(part: Callable[[Container], object]) -> None:
    """Builds what a function needs while it is imported: Lambda gives that phase a whole processor, whatever the memory.

    What goes wrong is not told here but at the first invocation, which has somebody to tell it to.
    """
    with contextlib.suppress(Exception):
        part(container())


def load_app(name: str) -> App[Any]:
    """The App object that `package.module:name` says.

    Raises:
        AppNotFound: with the reason, and with what is there instead.
    """
    module_name, separator, attribute = name.partition(":")
    if not separator or not attribute:
        raise AppNotFound(name, "write it as package.module:name")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        if module_name == missing or module_name.startswith(f"{missing}."):
            raise AppNotFound(
                name, f"there is no module {missing}; is it in this package, or in the folder where this was started?"
            ) from error
        raise AppNotFound(name, f"{module_name} imports {missing}, which is not installed") from error
    except Exception as error:
        log.exception("%s cannot be imported", module_name)
        raise AppNotFound(name, f"importing {module_name} raised {type(error).__name__}: {error}") from error
    found: Any = getattr(module, attribute, None)
    if isinstance(found, App):
        return cast("App[Any]", found)
    apps = ", ".join(key for key, value in vars(module).items() if isinstance(value, App)) or "none"
    what = f"has no {attribute}" if found is None else f"has a {attribute} that is a {type(found).__name__} and no App"
    raise AppNotFound(name, f"{module_name} {what} (apps in it: {apps})")
