"""The whole local stack over a small template: emulator, functions, queues, HTTP, and a clean end."""

import http.client
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

from durable.adapters.clock import SystemClock
from durable.local.front import Front, PortTaken, is_own
from durable.local.sources import Notice
from durable.local.stack import LocalStack, StackFailed, StackOptions

TEMPLATE = Path(__file__).with_name("small_template.yaml")
pytestmark = pytest.mark.moto


@pytest.fixture(scope="module")
def notices() -> list[Notice]:
    return []


@pytest.fixture(scope="module")
def stack(notices: list[Notice]) -> Iterator[LocalStack]:
    with LocalStack(StackOptions(app="good:app", port=0, template=TEMPLATE), report=notices.append) as stack:
        yield stack


def ask(stack: LocalStack, method: str, path: str, body: bytes | None = None) -> tuple[int, dict[str, str], Any]:
    connection = http.client.HTTPConnection(urlsplit(stack.url).netloc, timeout=20)
    try:
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, dict(answer.getheaders()), json.loads(text) if text else None
    finally:
        connection.close()


def eventually(what: Callable[[], Any]) -> Any:
    clock = SystemClock()
    end = clock.monotonic() + 20
    while not (found := what()):
        assert clock.monotonic() < end, "it never came"
        clock.sleep(0.05)
    return found


def test_a_request_goes_to_the_function_and_its_answer_comes_back(stack: LocalStack):
    status, headers, body = ask(stack, "POST", "/runs/a%40b", b'{"x":1}')
    assert (status, headers["location"]) == (201, "/here")
    assert body == {"path": "/runs/a@b", "body": '{"x":1}', "method": "POST"}


def test_a_request_that_kills_its_function_is_an_internal_error_and_the_next_one_is_answered(
    stack: LocalStack, notices
):
    assert ask(stack, "GET", "/die")[0] == 500
    assert ask(stack, "GET", "/other")[0] == 201
    assert "its process" in notices[-1].text


def test_a_request_that_is_too_large_is_refused_before_it_is_read(stack: LocalStack):
    connection = http.client.HTTPConnection(urlsplit(stack.url).netloc, timeout=20)
    connection.putrequest("POST", "/runs")
    connection.putheader("content-length", "7000000")
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize(
    ("host", "origin", "own"),
    [
        ("127.0.0.1:8321", None, True),
        ("localhost:8321", "http://localhost:8321", True),
        ("[::1]:8321", None, True),
        ("127.0.0.1:8321", "https://example.com", False),
        ("127.0.0.1:8321", "null", False),
        ("127.0.0.1:8321", "http://127.0.0.1:9999", False),
        ("rebound.example.com:8321", None, False),
        ("", None, False),
        ("[", None, False),
    ],
)
def test_pages_of_other_sites_are_kept_out(host: str, origin: str | None, own: bool):
    assert is_own(host, origin) is own


def test_a_request_of_another_sites_page_is_forbidden(stack: LocalStack):
    connection = http.client.HTTPConnection(urlsplit(stack.url).netloc, timeout=20)
    connection.request("POST", "/runs", b"{}", {"origin": "https://example.com"})
    assert connection.getresponse().status == 403
    connection.close()


def test_the_queue_feeds_its_function(stack: LocalStack):
    client(stack, "sqs").send_message(QueueUrl=stack.provisioned.outputs["QueueUrl"], MessageBody="hello")
    assert seen(stack) == "hello"


def test_an_event_on_the_bus_invokes_the_function_that_its_rule_names(stack: LocalStack, notices: list[Notice]):
    put_event(stack, source="bank", n=1)
    put_event(stack, source="shop.orders", n=0)
    put_event(stack, source="shop.orders", n=2, text='<id> "and" <source>')
    event = json.loads(seen(stack))
    assert (event["source"], event["detail-type"], event["detail"]) == (
        "shop.orders",
        "OrderPlaced",
        {"n": 2, "text": '<id> "and" <source>'},
    )
    assert event.keys() == {
        "version", "id", "detail-type", "source", "account", "time", "region", "resources", "detail",
    }  # fmt: skip
    assert event["time"].endswith("Z")


def test_a_function_that_fails_on_an_event_is_reported(stack: LocalStack, notices: list[Notice]):
    put_event(stack, source="shop", n=1, fail=True)
    assert json.loads(seen(stack))["detail"]["fail"] is True
    notice = eventually(lambda: next((notice for notice in notices if notice.source == "Listener"), None))
    assert "ValueError: no such event; its message comes back" in notice.text


def client(stack: LocalStack, service: str) -> Any:
    session: Any = boto3.Session(aws_access_key_id="local", aws_secret_access_key="local", region_name="us-east-1")
    return session.client(service, endpoint_url=stack.endpoint)


def put_event(stack: LocalStack, *, source: str, **detail: Any) -> None:
    entry = {"Source": source, "DetailType": "OrderPlaced", "Detail": json.dumps(detail)}
    assert client(stack, "events").put_events(Entries=[entry])["FailedEntryCount"] == 0


def seen(stack: LocalStack) -> str:
    """The next that a function has passed on."""
    sqs, url = client(stack, "sqs"), stack.provisioned.outputs["SeenUrl"]
    (message,) = eventually(lambda: sqs.receive_message(QueueUrl=url).get("Messages"))
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return message["Body"]


def test_a_taken_port_is_a_clear_refusal(stack: LocalStack):
    port = urlsplit(stack.url).port or 0
    with pytest.raises(PortTaken, match=f"Port {port} of 127.0.0.1 is taken.*--port"):
        LocalStack(StackOptions(app="good:app", port=port, template=TEMPLATE)).start()


def test_an_app_that_is_not_well_stops_the_start_with_its_reason():
    with pytest.raises(StackFailed, match="the app is bad"):
        LocalStack(StackOptions(app="bad:app", port=0, template=TEMPLATE)).start()


def test_a_template_that_is_not_there_is_named():
    with pytest.raises(StackFailed, match=r"no template at nowhere\.yaml"):
        LocalStack(StackOptions(port=0, template=Path("nowhere.yaml"))).start()


def test_nothing_is_left_after_the_end():
    before = own_children()
    stack = LocalStack(StackOptions(app="good:app", port=0, template=TEMPLATE))
    stack.start()
    port = urlsplit(stack.url).port or 0
    assert len(own_children() - before) >= 3  # the emulator, and a process of each function
    stack.stop()
    stack.stop()
    assert own_children() <= before
    Front(port, SystemClock(), lambda _: None).stop()


def own_children() -> set[int]:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    if not children.exists():
        pytest.skip("only Linux tells the children of a process")
    return {int(pid) for pid in children.read_text().split()}


def test_the_emulator_ends_with_the_process_that_started_it():
    """However it ended: here it is killed."""
    program = (
        "import os, signal\n"
        "from durable.local.emulator import Emulator\n"
        "emulator = Emulator()\n"
        "emulator.endpoint\n"
        "print(emulator._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # A file, not a pipe: a pipe would stay open for as long as the emulator holds its end.
    with tempfile.TemporaryFile() as output:
        subprocess.run([sys.executable, "-c", program], stdout=output, check=False)
        output.seek(0)
        emulator = int(output.read())
    eventually(lambda: not alive(emulator))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
