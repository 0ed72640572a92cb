"""Blobs: bytes under keys, the same from every adapter."""

from itertools import count
from typing import Any

import pytest

from durable.adapters.memory import MemoryBlobs
from durable.adapters.s3 import S3Blobs
from durable.ports import Blobs
from tests.contract.conftest import ADAPTERS
from tests.contract.worlds import AwsWorld

NAMES = (f"blobs-{n}" for n in count())


@pytest.fixture(params=ADAPTERS)
def blobs(request: pytest.FixtureRequest) -> Blobs:
    if request.param == "memory":
        return MemoryBlobs()
    world: AwsWorld = request.getfixturevalue(f"{request.param}_tables")
    s3, bucket = world.clients.make_s3(), next(NAMES)
    where: Any = {"LocationConstraint": s3.meta.region_name}
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=where)
    return S3Blobs(lambda: s3, bucket)


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
