"""Where the keys come from that sign tokens."""

from typing import Any

import pytest

from durable.adapters.secrets import SecretSigning
from durable.adapters.signing import TextSigning
from durable.aws import Clients, aws_ports
from durable.errors import InvalidInput, NotAvailable
from durable.model.task import StepTask, input_text
from durable.settings import Settings

KEY = "k" * 32
OLD = "o" * 40


class FakeSecrets:
    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: list[str] = []

    def get_secret_value(self, *, SecretId: str) -> dict[str, str]:  # noqa: N803 - boto3's
        self.asked.append(SecretId)
        return {"SecretString": self.text}


def test_the_first_line_signs_and_the_others_are_former_keys() -> None:
    assert list(TextSigning(f"{KEY}\n\n  {OLD}\n").keys()) == [KEY.encode(), OLD.encode()]


@pytest.mark.parametrize("text", ["", "\n", "short", f"{KEY}\nshort"])
def test_a_key_that_could_be_guessed_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="32 characters"):
        TextSigning(text)


def test_a_secret_is_fetched_once_and_not_before_it_is_needed() -> None:
    secrets = FakeSecrets(KEY)
    signing = SecretSigning(lambda: secrets, "arn:secret")
    assert secrets.asked == []
    assert [signing.keys(), signing.keys()] == [(KEY.encode(),)] * 2
    assert secrets.asked == ["arn:secret"]


def test_a_secret_that_is_too_short_is_refused_when_it_is_needed() -> None:
    with pytest.raises(InvalidInput, match="DURABLE_TOKEN_SECRET_ARN"):
        SecretSigning(lambda: FakeSecrets("x"), "arn").keys()


def settings(**more: Any) -> Settings:
    return Settings(
        app="shop:app", table="t", runs_queue_url="u", runs_queue_arn="a", timers_queue_url="u", schedule_group="g",
        schedule_role_arn="r", **more,
    )  # fmt: skip


def clients(secrets: FakeSecrets) -> Clients:
    unused: Any = None
    return Clients(dynamodb=unused, sqs=unused, scheduler=unused, make_s3=unused, make_secrets=lambda: secrets)


def test_a_deployment_signs_with_what_its_settings_say() -> None:
    secrets = FakeSecrets(OLD)
    assert aws_ports(settings(token_secret_arn="arn"), clients(secrets)).signing.keys() == (OLD.encode(),)
    both = settings(token_secret_arn="arn", token_secret=KEY)
    assert aws_ports(both, clients(secrets)).signing.keys() == (KEY.encode(),)


def test_a_deployment_without_secret_or_queue_says_so() -> None:
    ports = aws_ports(settings(), clients(FakeSecrets("")))
    with pytest.raises(NotAvailable, match="DURABLE_TOKEN_SECRET"):
        ports.signing.keys()
    task = StepTask(
        run_id="r", location="l", epoch=1, attempt=1, queue="labels", name="n", input=input_text([], {}), dispatched_at=0,
        timeout=1, heartbeat=None, idempotency_key="k",
    )  # fmt: skip
    with pytest.raises(NotAvailable, match="DURABLE_STEPS_QUEUE_URL"):
        ports.steps.send(task)
    with pytest.raises(NotAvailable, match='queue "labels"'):
        aws_ports(settings(steps_queues={"gpu": "u"}), clients(FakeSecrets(""))).steps.send(task)
