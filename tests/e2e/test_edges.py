"""What reaches the deployment from outside: events of a bus, and requests whose token is their credential."""

import json
from typing import Any

import pytest

from tests.e2e.deployment import Deployment, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/hooks/no-token"),
        ("GET", "/hooks/no-token"),
        ("POST", "/callbacks/no-token/complete"),
        ("POST", "/tasks/no-token/heartbeat"),
    ],
)
def test_a_request_with_a_token_needs_no_signature_and_is_refused_by_the_function(
    deployment: Deployment, method: str, path: str
) -> None:
    status, answer = deployment.request(method, path, {} if method == "POST" else None, signed=False)
    assert 400 <= status < 500
    assert "title" in answer, "a problem document: the gateway's own refusal has a message and no more"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("POST", path) for path in ("/hooks", "/callbacks/no-token", "/tasks", "/queues/default/claim")),
        *(("POST", path) for path in ("/runs", "/runs/x/cancel", "/runs/x/messages", "/events/paid")),
        *(
            ("GET", path)
            for path in ("/runs", "/runs/x", "/runs/x/history", "/workflows", "/callbacks/no-token/complete")
        ),
        ("DELETE", "/runs/x"),
        ("DELETE", "/hooks/no-token"),
    ],
)
def test_every_other_path_needs_a_signature(deployment: Deployment, method: str, path: str) -> None:
    body = {} if method == "POST" else None
    assert deployment.request(method, path, body, signed=False)[0] == 403
    forged = {
        "Authorization": "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu-central-1/execute-api/aws4_request, Signature=0"
    }
    assert deployment.request(method, path, body, signed=False, headers=forged)[0] == 403


def test_links_lead_to_the_api_and_the_secret_that_signs_them_is_there(deployment: Deployment) -> None:
    emulator, outputs = deployment.emulator, deployment.outputs
    configuration = emulator.client("lambda").get_function_configuration(FunctionName="e2e-orchestrator")
    variables: dict[str, Any] = configuration["Environment"]["Variables"]
    assert variables["DURABLE_PUBLIC_URL"] == outputs["ApiUrl"]
    assert variables["DURABLE_TOKEN_SECRET_ARN"] == outputs["TokenSecretArn"]
    secret = emulator.client("secretsmanager").get_secret_value(SecretId=outputs["TokenSecretArn"])
    assert len(secret["SecretString"]) == 64


def test_an_event_on_the_bus_reaches_its_function(deployment: Deployment) -> None:
    entry = {"Source": "shop", "DetailType": "NobodyWaitsForThis", "Detail": json.dumps({"n": 1})}
    deployment.emulator.client("events").put_events(Entries=[entry])
    assert until(lambda: "Lambda e2e-events" in deployment.emulator.says(), seconds=30), deployment.emulator.says()
