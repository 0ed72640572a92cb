"""Handlers that the tests of the local stack invoke in child processes."""

import os
import time


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
