"""The whole deployment on this machine, made from template.yaml: emulator, functions, event sources and HTTP front."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Protocol, Self

import boto3

from durable.adapters.clock import SystemClock
from durable.local.emulator import Emulator
from durable.local.events import HttpRequest, bus_event, queue_event
from durable.local.front import Front
from durable.local.functions import LocalFunction
from durable.local.provision import REGION, HttpSource, Provisioned, QueueSource, RateSource, RuleSource, provision
from durable.local.sources import MakeEvent, Notice, QueuePoller, Rate, Report, Schedules
from durable.ports import Clock

DEFAULT_PORT: Final = 8321
DEFAULT_APP: Final = "examples.orders.app:app"
_LEASE_MARGIN: Final = 6
"""A message of an invocation that died comes back when the lease of its run has ended, not before."""


class StackFailed(RuntimeError):
    """The local stack could not start."""


class _Source(Protocol):
    name: str

    def run(self, stopping: threading.Event) -> None: ...


def _silent(_: Notice) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """What can be chosen about a local stack."""

    app: str = DEFAULT_APP
    """The App object, as `package.module:name`."""
    port: int = DEFAULT_PORT
    """Port of the HTTP front; 0 picks a free one."""
    template: Path = Path("template.yaml")
    timeout: int | None = None
    """Seconds an orchestrator invocation may take, in place of the template's: a crash is noticed about that late."""
    concurrency: int = 3
    """Processes of one function at most."""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further parameters of the template."""


class LocalStack:
    """Stands from `start` (or the start of the `with` block) until `stop`; what was stored is gone then."""

    def __init__(
        self,
        options: StackOptions,
        *,
        report: Report = _silent,
        output: IO[str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._options = options
        self._told = report
        self._output = output
        self._clock = clock or SystemClock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._functions: dict[str, LocalFunction] = {}
        self._emulator: Emulator | None = None
        self._front: Front | None = None
        self._provisioned: Provisioned | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Address of the HTTP API."""
        assert self._front is not None
        return self._front.url

    @property
    def endpoint(self) -> str:
        """Address of the emulated AWS services."""
        assert self._emulator is not None
        return self._emulator.endpoint

    @property
    def provisioned(self) -> Provisioned:
        """Names and addresses of what was created."""
        assert self._provisioned is not None
        return self._provisioned

    def start(self) -> None:
        """Returns once the API answers. From here on, this process has no AWS profile any more.

        Raises:
            PortTaken: another process listens on the port.
            StackFailed: the app cannot be imported, or the template is not there.
        """
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def wait(self) -> None:
        """Returns if the emulated services end by themselves; nothing works from then on."""
        assert self._emulator is not None
        self._emulator.wait()

    def stop(self) -> None:
        """Ends everything, invocations in flight after a moment's grace; safe to call twice."""
        self._stopping.set()
        if self._front is not None:
            self._front.stop()
            self._front = None
        for function in self._functions.values():
            function.stop()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        if self._emulator is not None:
            self._emulator.stop()
            self._emulator = None

    def _report(self, notice: Notice) -> None:
        if not self._stopping.is_set():  # what is cut short by our own end is no news
            self._told(notice)

    def _start(self) -> None:
        # A profile that is named and not there, or that wants a login, stops every client, whatever keys it is given.
        for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
            os.environ.pop(name, None)  # noqa: TID251 - it is not read, it is done away with
        if not self._options.template.is_file():
            raise StackFailed(f"There is no template at {self._options.template}; run this in the project's folder.")
        self._front = Front(self._options.port, self._clock, self._report)
        self._emulator = Emulator()
        self._provisioned = self._provision()
        self._functions = {name: self._function(name) for name in self._provisioned.functions}
        for function in self._functions.values():
            function.prepare()
        api = self._api()
        self._check(api)
        for source in self._sources():
            thread = threading.Thread(target=source.run, args=(self._stopping,), name=source.name, daemon=True)
            thread.start()
            self._threads.append(thread)
        self._front.serve()

    def _provision(self) -> Provisioned:
        parameters = {"App": self._options.app, **self._options.parameters}
        provisioned = provision(
            self._options.template, parameters, endpoint=self.endpoint, region=REGION, api_url=self.url
        )
        if self._options.timeout is None:
            return provisioned
        return self._with_timeout(provisioned, self._options.timeout)

    def _with_timeout(self, provisioned: Provisioned, seconds: int) -> Provisioned:
        """Other seconds for the function that takes turns, and visibility timeouts to match for its queues."""
        fed = [source for source in provisioned.sources if isinstance(source, QueueSource)]
        orchestrator = {source.function for source in fed if source.queue_url == provisioned.runs_queue_url}
        queues = [source for source in fed if source.function in orchestrator]
        sqs = self._client("sqs")
        for source in queues:
            visibility = {"VisibilityTimeout": str(seconds + _LEASE_MARGIN)}
            sqs.set_queue_attributes(QueueUrl=source.queue_url, Attributes=visibility)
        functions = {
            name: replace(function, timeout=seconds) if name in orchestrator else function
            for name, function in provisioned.functions.items()
        }
        return replace(provisioned, functions=functions)

    def _function(self, name: str) -> LocalFunction:
        environment = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_EC2_METADATA_DISABLED": "true",
            "PYTHONUNBUFFERED": "1",
            "DURABLE_LOG_FORMAT": "text",
        }
        return LocalFunction(
            self.provisioned.functions[name],
            environment=environment,
            region=REGION,
            clock=self._clock,
            concurrency=self._options.concurrency,
            output=self._output,
        )

    def _api(self) -> LocalFunction:
        for source in self.provisioned.sources:
            if isinstance(source, HttpSource):
                return self._functions[source.function]
        raise StackFailed(f"{self._options.template} has no function with an HTTP route.")

    def _check(self, api: LocalFunction) -> None:
        """Asks the API for its health, so that an app that cannot be imported is told here and not by every run."""
        assert self._front is not None
        self._front.connect(api)
        status, _, body = self._front.answer(HttpRequest("GET", "/health", (), b""))
        if status == 200:
            return
        answer = json.loads(body)
        raise StackFailed(answer.get("detail") or answer.get("message") or body.decode())

    def _sources(self) -> list[_Source]:
        sqs = self._client("sqs")
        sources: list[_Source] = []
        for source in self.provisioned.sources:
            match source:
                case QueueSource():
                    sources.append(self._poller(source, sqs))
                case RuleSource(function=name, queue_url=url, queue_arn=arn):
                    # One event an invocation, and it comes again if the invocation fails.
                    queue = QueueSource(name, url, arn, fifo=False, batch_size=1, window=0, partial_failures=False)
                    sources.append(self._poller(queue, sqs, event=bus_event))
                case RateSource():
                    function = self._functions[source.function]
                    sources.append(Rate(source, function, region=REGION, clock=self._clock, report=self._report))
                case HttpSource():
                    pass  # the front stands in for it
        scheduler = self._client("scheduler")
        groups = self.provisioned.schedule_groups
        sources.append(Schedules(groups, scheduler, sqs, clock=self._clock, report=self._report))
        return sources

    def _poller(self, source: QueueSource, sqs: Any, event: MakeEvent = queue_event) -> QueuePoller:
        # A function that takes one message at a time needs all its processes to get on.
        batches = self._options.concurrency if source.batch_size == 1 else 2
        function = self._functions[source.function]
        return QueuePoller(source, function, sqs, region=REGION, batches=batches, report=self._report, event=event)

    def _client(self, service: Any) -> Any:
        session: Any = boto3.Session("local", "local", region_name=REGION)  # cannot reach a real account
        return session.client(service, endpoint_url=self.endpoint)
