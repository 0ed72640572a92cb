"""Rules of an EventBridge bus, locally: the emulator invokes no function, so each target is a queue that a poller reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from durable.local.template import Expression, Properties

RULE: Final = "AWS::Events::Rule"
_INVOCATIONS: Final = 3
"""Of a function with an event that it fails on: Lambda repeats an asynchronous invocation twice."""
_WHOLE: Final = {"InputTemplate": "<aws.events.event.json>"}
"""The event as it is: the emulator's default leaves out the account, and mixes up what a detail says in `<>`."""
_KEPT: Final = ("EventBusName", "EventPattern", "State")


@dataclass(frozen=True, slots=True)
class LocalTarget:
    """A function that a rule names as its target, and the queue that stands between the two."""

    rule: str
    function: str
    queue: str
    """Logical ids, all three."""


def local_targets(rules: Mapping[str, Properties]) -> Iterator[LocalTarget]:
    """The functions that rules on events invoke; rules on time are not of this kind."""
    for name, rule in rules.items():
        if "EventPattern" in rule:
            for i, target in enumerate(rule["Targets"]):
                yield LocalTarget(name, target["Arn"]["Fn::GetAtt"][0], f"{name}Queue{i}")


def local_rules(rules: Mapping[str, Properties], functions: Mapping[str, Properties]) -> dict[str, Any]:
    """The resources of the local stack for these rules: each rule again, and a queue for each of its targets."""
    targets = list(local_targets(rules))
    resources: dict[str, Any] = {target.queue: _queue(functions[target.function]) for target in targets}
    for name in {target.rule for target in targets}:
        queues = [target.queue for target in targets if target.rule == name]
        entries = [{"Id": queue, "Arn": arn_of(queue), "InputTransformer": _WHOLE} for queue in queues]
        kept = {key: value for key, value in rules[name].items() if key in _KEPT}
        resources[name] = {"Type": RULE, "Properties": {**kept, "Targets": entries}}
    return resources


def arn_of(queue: str) -> Expression:
    """The expression for it."""
    return {"Fn::GetAtt": [queue, "Arn"]}


def _queue(function: Properties) -> dict[str, Any]:
    """A queue that gives an event as often and in the end to the same dead letters as Lambda would."""
    properties: Properties = {"VisibilityTimeout": function["Timeout"]}
    if dead_letters := function.get("DeadLetterConfig"):
        properties["RedrivePolicy"] = {
            "deadLetterTargetArn": dead_letters["TargetArn"],
            "maxReceiveCount": _INVOCATIONS,
        }
    return {"Type": "AWS::SQS::Queue", "Properties": properties}
