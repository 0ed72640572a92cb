"""The worker in a shell script that docs/remote-steps.md shows performs a task of a real API."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from pydantic import BaseModel

from durable import App, Context
from durable.adapters.memory import MemoryStepQueue, MemoryTaskSource
from durable.engine.claims import TaskClaims
from durable.local.events import HttpRequest, http_event
from durable.model.task import StepTask
from durable.testing import TestEnvironment
from durable.testing.services import in_memory
from handlers.api import build
from handlers.runs import Runs
from tests.repo.tree import ROOT, text_of

PAGE = ROOT / "docs/remote-steps.md"
app = App("shop")


class Label(BaseModel):
    text: str


@app.remote_step(queue="labels", heartbeat="30s")
def print_label(order: str, *, copies: int = 1) -> list[Label]:
    raise AssertionError("the script performs it")


@app.workflow
async def ship(ctx: Context, order: str) -> list[str]:
    labels = await ctx.call(print_label, order, copies=2)
    return [label.text for label in labels]


class ElsewhereQueue(MemoryStepQueue):
    """Nothing is delivered from here: tasks go to a queue that workers outside serve."""

    def __init__(self, other: MemoryStepQueue, clock: Any) -> None:
        super().__init__(clock)
        self._other = other

    def send(self, task: StepTask, *, delay: float = 0.0) -> None:
        self._other.send(task, delay=delay)


@dataclass
class LambdaContext:
    aws_request_id: str = "request-1"


@contextmanager
def served() -> Iterator[tuple[TestEnvironment, str]]:
    services = in_memory()
    own = MemoryStepQueue(services.clock)
    env = TestEnvironment(app, services=replace(services, steps=ElsewhereQueue(own, services.clock)))
    claims = TaskClaims(app, env.ports, lambda queue: MemoryTaskSource(own) if queue == "labels" else None)
    api = build(Runs(app, env, env.ports), claims)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None: ...

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            event = http_event(HttpRequest("POST", self.path, self.headers.items(), body), 0.0)
            context: Any = LambdaContext()
            answered = api.resolve(event, context)
            env.run_until_idle()
            self.send_response(answered["statusCode"])
            self.end_headers()
            self.wfile.write(answered["body"].encode())

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield env, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


def test_the_script_of_the_page_performs_a_remote_step() -> None:
    script = re.search(r"^```sh\n(.*?)^```", text_of(PAGE), re.MULTILINE | re.DOTALL)
    assert script is not None
    with served() as (env, url):
        handle = env.start(ship, "o-1", id="o-1")
        env.run_until_idle()
        done = subprocess.run(
            ["bash", "-euc", script[1].replace("http://127.0.0.1:8321", url)],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env={"PATH": "/usr/bin:/bin", "no_proxy": "*"},
        )
        assert done.stdout.count('{"cancelled": false}') == 2
        assert handle.result() == ["o-1 1", "o-1 2"]


def test_the_task_that_the_page_shows_has_the_members_that_there_are() -> None:
    shown = re.search(r"^```json\n(.*?)^```", text_of(PAGE), re.MULTILINE | re.DOTALL)
    assert shown is not None
    with served() as (env, url):
        env.start(ship, "o-1", id="o-1")
        env.run_until_idle()
        asked = ["curl", "-s", "--noproxy", "*", f"{url}/queues/labels/claim", "-d", ""]
        claimed = json.loads(subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout)
    page = json.loads(shown[1])
    assert (page.keys(), page["task"].keys()) == (claimed.keys(), claimed["task"].keys())
    differs = {name for name, value in page["task"].items() if value != claimed["task"][name]}
    assert differs <= {"idempotency_key"}
