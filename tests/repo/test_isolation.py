"""No test reaches another machine or somebody's AWS account."""

import socket

import boto3
import pytest

from tests.conftest import LeftTheMachine


def test_a_connection_that_would_leave_the_machine_is_refused() -> None:
    with socket.socket() as outward, pytest.raises(LeftTheMachine, match=r"192\.0\.2\.1"):
        outward.connect(("192.0.2.1", 443))


def test_a_name_of_another_machine_is_not_looked_up() -> None:
    with pytest.raises(LeftTheMachine, match="elsewhere"):
        socket.getaddrinfo("elsewhere.example", 443)


def test_a_connection_to_the_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass


def test_clients_find_made_up_credentials() -> None:
    credentials = boto3.Session().get_credentials()
    assert credentials is not None
    assert credentials.access_key == "testing"
