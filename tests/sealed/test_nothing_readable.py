"""SEC-07: with a codec, no service ever gets a payload that can be read, and every run ends as without one."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from durable.aws import make_clients
from durable.testing import TestEnvironment
from durable.testing.services import in_memory
from examples.sealed.kms import KmsCodec
from tests.contract.worlds import AwsWorld, moto_world
from tests.scenarios.emulated import emulated
from tests.sealed.sealing import KeyCodec, readable_in, watched
from tests.sealed.secrets_everywhere import SECRET, made, play


@pytest.mark.parametrize("codec", [None, KeyCodec("k")])
def test_sec_07_no_port_is_given_a_payload_that_can_be_read(codec: Any) -> None:
    services, notes = watched(in_memory())
    with TestEnvironment(made(codec), services=services) as env:
        play(env)
    found = readable_in(SECRET, notes)
    assert (found == []) == (codec is not None), found[:5]


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    with mock_aws():
        yield moto_world(make_clients(), stack="sealed")


@pytest.mark.moto
@pytest.mark.parametrize("sealed", [False, True])
def test_sec_07_table_and_bucket_hold_nothing_that_can_be_read(world: AwsWorld, sealed: bool) -> None:
    kms = boto3.client("kms", region_name=world.clients.sqs.meta.region_name)
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    codec = KmsCodec(lambda: kms, key, app="secrets")
    sent: list[str] = []
    world.clients.sqs.meta.events.register(
        "before-parameter-build.sqs.SendMessage", lambda params, **_: sent.append(json.dumps(params))
    )
    with TestEnvironment(made(codec if sealed else None), services=emulated(world)) as env:
        play(env)
        env.restart()
        assert env.result("a") == SECRET
    everything = [*_table(world), *_bucket(world), *sent]
    found = readable_in(SECRET, everything)
    assert (found == []) == sealed, found[:5]
    names = " ".join(map(str, everything))
    assert all(name in names for name in ("everything", "plain", "happened")), "names and tags stay readable"


def _table(world: AwsWorld) -> Iterator[str | bytes]:
    pages = world.clients.dynamodb.get_paginator("scan").paginate(TableName=world.settings.table)
    for page in pages:
        for item in page["Items"]:
            yield repr(item)
            for value in item.values():
                if "B" in value:
                    yield bytes(value["B"])


def _bucket(world: AwsWorld) -> Iterator[bytes]:
    s3 = world.clients.make_s3()
    bucket = world.settings.bucket or ""
    for item in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
        yield s3.get_object(Bucket=bucket, Key=item.get("Key", ""))["Body"].read()
