"""Handlers that the tests of the local stack invoke in child processes."""

import json
import os
import time
from typing import Any

import botocore.session


def echo(event, context):
    print("what handlers print is not their answer")
    return {"event": event, "function": context.function_name, "left": context.get_remaining_time_in_millis()}


def pid(event, context):
    return os.getpid()


def die(event, context):
    os._exit(3)


def fail(event, context):
    raise ValueError("no such order")


def stall(event, context):
    time.sleep(60)


def unserialisable(event, context):
    return {1, 2}


def refuse_odd(event, context):
    """Fails the messages whose body is an odd number."""
    odd = [record["messageId"] for record in event["Records"] if int(record["body"]) % 2]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in odd]}


def nonsense(event, context):
    return {"batchItemFailures": [{"itemIdentifier": "never seen"}]}


def api(event, context):
    """Healthy unless the app is called bad; echoes everything else."""
    if event["rawPath"] == "/health":
        healthy = os.environ["APP"] != "bad:app"  # noqa: TID251 - as handlers do
        return {"statusCode": 200 if healthy else 503, "body": json.dumps({"detail": "the app is bad"})}
    if event["rawPath"] == "/die":
        os._exit(1)
    body = {"path": event["rawPath"], "body": event.get("body"), "method": event["requestContext"]["http"]["method"]}
    return {"statusCode": 201, "headers": {"location": "/here"}, "body": json.dumps(body)}


def pass_on_event(event, context):
    """Sends each event to the queue of what has been seen, but fails on the first that tells it to."""
    sqs: Any = botocore.session.get_session().create_client("sqs")
    sqs.send_message(QueueUrl=os.environ["SEEN_URL"], MessageBody=json.dumps(event))  # noqa: TID251 - as handlers do
    if event["detail"].get("fail"):
        raise ValueError("no such event")


def pass_on(event, context):
    """Sends each body to the queue of what has been seen."""
    sqs: Any = botocore.session.get_session().create_client("sqs")
    for record in event["Records"]:
        sqs.send_message(QueueUrl=os.environ["SEEN_URL"], MessageBody=record["body"])  # noqa: TID251 - as handlers do
    return {"batchItemFailures": []}
