"""Keeps every test on this machine, and true on a busy one: made-up AWS credentials, the loopback only, no deadlines."""

import ipaddress
import os
import socket
import sys
from typing import Any

import pytest
from hypothesis import settings

_FAKE_AWS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


class LeftTheMachine(AssertionError):
    """A test tried to reach another machine."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"A test tried to connect to {host}. Tests talk to the loopback only: start a server on 127.0.0.1 or use "
            "the in-memory ports."
        )


def pytest_configure(config: pytest.Config) -> None:
    """Set the environment before any test module is imported, because clients read it when they are built."""
    del config
    os.environ.pop("AWS_PROFILE", None)  # noqa: TID251 - the one place where tests touch the environment
    os.environ.update(_FAKE_AWS)  # noqa: TID251 - the same
    sys.addaudithook(_refuse_other_machines)
    settings.register_profile("busy", deadline=None)  # how long an example takes says how busy the machine is
    settings.load_profile("busy")


def _refuse_other_machines(event: str, arguments: tuple[Any, ...]) -> None:
    match event, arguments:
        case "socket.connect", (_, (str() as host, *_)):  # a Unix socket's address is no tuple
            pass
        case "socket.getaddrinfo", (str() as host, *_):
            pass
        case _:
            return
    if not _is_loopback(host):
        raise LeftTheMachine(host)


def _is_loopback(host: str) -> bool:
    if host in {"", "localhost", socket.gethostname()}:
        return True
    try:
        return ipaddress.ip_address(host.split("%", maxsplit=1)[0]).is_loopback
    except ValueError:
        return False
