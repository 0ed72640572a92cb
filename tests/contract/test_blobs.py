"""Blobs: bytes under keys, the same from every adapter."""

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from durable.adapters.memory import MemoryBlobs
from durable.adapters.s3 import S3Blobs
from durable.ports import Blobs


@pytest.fixture(params=["memory", pytest.param("moto", marks=pytest.mark.moto)])
def blobs(request: pytest.FixtureRequest) -> Iterator[Blobs]:
    if request.param == "memory":
        yield MemoryBlobs()
        return
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="blobs")
        yield S3Blobs(lambda: s3, "blobs")


def test_what_is_put_is_got(blobs: Blobs) -> None:
    for _ in range(2):
        blobs.put("run-1/a", bytes(range(256)))
    assert blobs.get("run-1/a") == bytes(range(256))
    assert blobs.get("run-1/b") is None


def test_deleting_takes_all_that_begins_with_the_prefix_and_nothing_else(blobs: Blobs) -> None:
    for n in range(1005):
        blobs.put(f"run-1/{n}", b"")
    blobs.put("run-11/a", b"kept")
    for _ in range(2):
        blobs.delete("run-1/")
    assert [blobs.get("run-1/0"), blobs.get("run-1/1004")] == [None, None]
    assert blobs.get("run-11/a") == b"kept"
