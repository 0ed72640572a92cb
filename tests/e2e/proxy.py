"""A proxy between the deployed functions and the emulator that lets requests fail on the wire."""

import contextlib
import http.client
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.deployment import EMULATOR_PYTHON, Deployment, Emulator, answers, free_port, until

FUNCTIONS = ("api", "orchestrator", "remote-steps", "events", "maintenance")


@dataclass(frozen=True, slots=True)
class Proxy:
    port: int

    def let(self, *rules: dict[str, Any]) -> None:
        """From now on these rules hold, and no other; what happened before is forgotten."""
        self._ask("POST", "rules", rules)
        self._ask("DELETE", "fired")

    def happened(self) -> Counter[str]:
        """How often each operation was made to fail."""
        return Counter(event["operation"] for event in self._ask("GET", "fired?limit=2000"))

    def seen(self) -> int:
        """Requests that came this way at all."""
        return self._ask("GET", "health")["requests_seen"]

    def _ask(self, method: str, path: str, body: Sequence[Any] | None = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            told = {"Content-Type": "application/json"}
            connection.request(method, f"/_microburst/{path}", None if body is None else json.dumps(body), told)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            return json.loads(answer.read())


@contextlib.contextmanager
def running_proxy(emulator: Emulator, folder: Path) -> Iterator[Proxy]:
    proxy = Proxy(free_port())
    log = folder / "proxy.log"
    command = [EMULATOR_PYTHON, "-m", "microburst", "--upstream", emulator.endpoint, "--port", str(proxy.port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--no-resign"], env={"PATH": os.defpath, "HOME": str(folder)}, stdout=output, stderr=output
        )
    try:
        until(lambda: answers(proxy.port) or process.poll() is not None, seconds=30)
        assert process.poll() is None, log.read_text(errors="replace")
        yield proxy
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def lead_through(deployment: Deployment, proxy: Proxy) -> None:
    """Every function's requests to AWS take the way over the proxy from now on."""
    functions = deployment.emulator.client("lambda")
    for name in FUNCTIONS:
        deployed = f"{deployment.stack}-{name}"
        variables = functions.get_function_configuration(FunctionName=deployed)["Environment"]["Variables"]
        functions.update_function_configuration(
            FunctionName=deployed,
            Environment={"Variables": variables | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}"}},
        )
