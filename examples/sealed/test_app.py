"""The prescription in memory, with KMS on an emulator."""

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from durable import App, RunBlocked, RunFailed
from durable.testing import TestEnvironment
from examples.sealed.app import CONSENT, KEY, Prescription, app, prescribe
from examples.sealed.kms import KmsCodec

ADA = Prescription(patient="Ada Lovelace", drug="penicillin")


@pytest.fixture(autouse=True)
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        client = boto3.client("kms")
        client.create_alias(AliasName=KEY, TargetKeyId=client.create_key()["KeyMetadata"]["KeyId"])
        yield


@pytest.fixture
def sealed() -> App:
    """The app, with a codec that has met no key: an emulator's keys go with it."""
    app.codec = KmsCodec(lambda: boto3.client("kms"), KEY, app="sealed")
    return app


def test_a_prescription_is_dispensed(sealed: App) -> None:
    with TestEnvironment(sealed) as env:
        handle = env.start(prescribe, ADA)
        env.run_until_idle()
        handle.send(CONSENT, "Ada Lovelace")
        assert handle.result() == "penicillin for Ada Lovelace, signed Ada Lovelace"
        assert env.get_state(handle.id, "waits for") == "Ada Lovelace"


def test_what_went_wrong_is_readable_for_those_who_may_read_it(sealed: App) -> None:
    with TestEnvironment(sealed) as env:
        allergic = ADA.model_copy(update={"allergies": ["penicillin"]})
        handle = env.start(prescribe, allergic)
        with pytest.raises(RunFailed, match="Ada Lovelace is allergic to penicillin"):
            handle.result()
        record = env.world.services.store.get(handle.id)  # as it is stored
        assert "Ada" not in repr(record)
        assert "StepFailed" in repr(record)


def test_another_key_blocks_the_run_and_the_right_one_lets_it_go_on(sealed: App) -> None:
    client = boto3.client("kms")
    client.create_alias(AliasName="alias/other", TargetKeyId=client.create_key()["KeyMetadata"]["KeyId"])
    right = sealed.codec
    with TestEnvironment(sealed) as env:
        handle = env.start(prescribe, ADA)
        env.run_until_idle()
        handle.send(CONSENT, "Ada Lovelace")
        sealed.codec = KmsCodec(lambda: client, "alias/other", app="sealed")
        env.deploy(sealed)
        with pytest.raises(RunBlocked, match="codec does not open what it sealed"):
            handle.result()
        sealed.codec = right
        env.deploy(sealed)
        assert handle.result() == "penicillin for Ada Lovelace, signed Ada Lovelace"
