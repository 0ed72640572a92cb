"""The template on a second emulator: start it, build and deploy with SAM, and call the API as a signed client."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

ROOT = Path(__file__).parents[2]
EMULATOR_PYTHON = ROOT / ".venv-ministack" / "bin" / "python"
SAM = ROOT / ".venv-sam" / "bin" / "sam"

REGION = "eu-central-1"
ROOT_KEY = "test"
"""The emulator's account owner; whoever else calls is held to the policies of the template."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Emulator:
    port: int
    log: Path

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, service: str, *, key: str = ROOT_KEY) -> Any:
        session: Any = boto3.Session(key, ROOT_KEY, region_name=REGION)
        return session.client(service, endpoint_url=self.endpoint)

    def says(self) -> str:
        return self.log.read_text(errors="replace")


@contextlib.contextmanager
def running_emulator(folder: Path, *, auth: bool = True) -> Iterator[Emulator]:
    """An emulator on a free loopback port that enforces IAM, if asked to; its data is gone afterwards."""
    emulator = Emulator(port=free_port(), log=folder / "emulator.log")
    environment = {
        "PATH": os.defpath,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "AUTH": str(auth).lower(),
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(emulator.port),
        "IOT_MTLS_ENABLED": "false",
        "MINISTACK_REGION": REGION,
        "AWS_ACCESS_KEY_ID": ROOT_KEY,
        "AWS_SECRET_ACCESS_KEY": ROOT_KEY,
    }
    launcher = Path(__file__).with_name("ministack_launcher.py")
    with emulator.log.open("wb") as log:
        process = subprocess.Popen([EMULATOR_PYTHON, launcher], env=environment, stdout=log, stderr=log)
    try:
        until(lambda: answers(emulator.port) or process.poll() is not None, seconds=30)
        assert process.poll() is None, emulator.says()
        yield emulator
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass(frozen=True, slots=True)
class Deployment:
    emulator: Emulator
    stack: str
    outputs: Mapping[str, str]

    def logged(self) -> Iterator[str]:
        """What all functions have written to their logs."""
        logs = self.emulator.client("logs")
        for group in logs.describe_log_groups(logGroupNamePrefix=f"/aws/lambda/{self.stack}-")["logGroups"]:
            for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"]):
                yield from (f"{group['logGroupName']}: {event['message']}" for event in page["events"])

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        signed: bool = True,
    ) -> tuple[int, Any]:
        """Call the HTTP API and return status and decoded answer."""
        # The API's host name exists in the emulator only, so the request goes to the loopback under that name.
        host = urllib.parse.urlsplit(self.outputs["ApiUrl"]).netloc
        request = AWSRequest(
            method, f"http://{host}{path}", {"Content-Type": "application/json", **(headers or {})}, encoded(body)
        )
        if signed:
            SigV4Auth(Credentials(ROOT_KEY, ROOT_KEY), "execute-api", REGION).add_auth(request)
        connection = http.client.HTTPConnection("127.0.0.1", self.emulator.port, timeout=35)
        with contextlib.closing(connection):
            connection.request(method, path, encoded(body), {**dict(request.headers.items()), "Host": host})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")


class Sam:
    """The SAM command line against an emulator, with its files in a folder of their own."""

    def __init__(self, emulator: Emulator, folder: Path) -> None:
        self.built = folder / "built"
        self.runtime = python_of_the_emulator()
        self._emulator = emulator
        self._folder = folder

    def at(self, emulator: Emulator) -> "Sam":
        """The same package, for another emulator."""
        return Sam(emulator, self._folder)

    def validate(self) -> None:
        self._run("validate", "--lint")

    def build(self) -> None:
        self._run("build", "--build-dir", str(self.built), "--parameter-overrides", *self._for_this_machine())

    def deploy(self, stack: str, parameters: Mapping[str, str]) -> Deployment:
        overrides = [f"{name}={value}" for name, value in parameters.items()]
        self._run(
            "deploy",
            *("--stack-name", stack, "--template-file", str(self.built / "template.yaml")),
            *("--resolve-s3", "--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-progressbar"),
            *("--parameter-overrides", *self._for_this_machine(), *overrides),
        )
        description = self._emulator.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
        outputs = {output["OutputKey"]: output["OutputValue"] for output in description["Outputs"]}
        return Deployment(self._emulator, stack, outputs)

    def _for_this_machine(self) -> list[str]:
        architecture = "arm64" if os.uname().machine in {"aarch64", "arm64"} else "x86_64"
        return [f"Runtime={self.runtime}", f"Architecture={architecture}"]

    def _run(self, *arguments: str) -> None:
        inherited = dict(os.environ)  # noqa: TID251 - pip's settings, proxies and the like are the machine's
        inherited.pop("AWS_SESSION_TOKEN", None)
        environment = inherited | {
            # SAM builds with the Python that it finds under the runtime's name.
            "PATH": f"{EMULATOR_PYTHON.parent}:{inherited['PATH']}",
            "HOME": str(self._folder),
            "SAM_CLI_TELEMETRY": "0",
            "AWS_ENDPOINT_URL": self._emulator.endpoint,
            "AWS_ACCESS_KEY_ID": ROOT_KEY,
            "AWS_SECRET_ACCESS_KEY": ROOT_KEY,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
        }
        ended = subprocess.run(
            [SAM, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, f"sam {arguments[0]}\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}"


def python_of_the_emulator() -> str:
    """The runtime whose Python executes the functions, such as `python3.11`: the emulator's own."""
    question = "import sys; print('python%d.%d' % sys.version_info[:2])"
    return subprocess.run([EMULATOR_PYTHON, "-c", question], capture_output=True, text=True, check=True).stdout.strip()


def until(happened: Callable[[], object], *, seconds: float) -> bool:
    """Whether it happened in time."""
    deadline = time.monotonic() + seconds  # noqa: TID251 - another process's time is the wall's
    while not happened():
        if time.monotonic() > deadline:  # noqa: TID251 - the same
            return False
        time.sleep(0.1)
    return True


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def encoded(body: Any) -> bytes:
    return b"" if body is None else json.dumps(body).encode()
