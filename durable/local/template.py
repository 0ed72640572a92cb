"""Reads a SAM template as CloudFormation would deploy it, and cuts out the part that the local emulator creates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import boto3
from samtranslator.parser.parser import Parser  # pyright: ignore[reportMissingTypeStubs]
from samtranslator.translator.translator import Translator  # pyright: ignore[reportMissingTypeStubs]
from samtranslator.yaml_helper import (  # pyright: ignore[reportMissingTypeStubs]
    yaml_parse,  # pyright: ignore[reportUnknownVariableType]
)

from durable.local.rules import RULE, local_rules

Properties: TypeAlias = dict[str, Any]
Expression: TypeAlias = Any
"""A property's value: a literal, or a function such as `{"Ref": "Table"}` that only a stack can evaluate."""

StandIns: TypeAlias = Mapping[tuple[str, str], Expression]
"""What stands for an attribute (or `Ref`) of a resource that the emulator's CloudFormation does not create."""

CREATED: Final = frozenset({"AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::S3::Bucket", "AWS::Events::EventBus"})
"""What moto's CloudFormation creates. It drops Scheduler resources and secrets, and fails on those of HTTP APIs."""

_PLACEHOLDER: Final = re.compile(r"\$\{([A-Za-z0-9]+)(\.[A-Za-z0-9]+)?\}")


class Template:
    """The resources that a template comes to, SAM's own types replaced by CloudFormation's."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body

    def of_type(self, kind: str) -> dict[str, Properties]:
        """The properties of each resource of a type, by logical id."""
        resources: dict[str, dict[str, Any]] = self.body["Resources"]
        return {
            name: resource.get("Properties", {}) for name, resource in resources.items() if resource["Type"] == kind
        }

    def created_locally(self, questions: Mapping[str, Expression], stand_ins: StandIns | None = None) -> dict[str, Any]:
        """The template of the local stack; the answers to the questions will be among its outputs.

        An output of the original stays if everything that it refers to is created locally.
        """
        known = dict(stand_ins or {})
        sections = {name: self.body[name] for name in ("Mappings", "Conditions") if name in self.body}
        # A reference to a parameter is text, of a number too; moto makes a number of it, which no mapping has as a key.
        parameters = {
            name: {"Type": "String", "Default": str(parameter["Default"])}
            for name, parameter in self.body["Parameters"].items()
        }
        resources: dict[str, Any] = self.body["Resources"]
        created = {name: resource for name, resource in resources.items() if resource["Type"] in CREATED}
        created |= local_rules(self.of_type(RULE), self.of_type("AWS::Lambda::Function"))
        outputs = {name: {"Value": output["Value"]} for name, output in self._local_outputs()}
        asked = {name: {"Value": self._with_stand_ins(question, known)} for name, question in questions.items()}
        return {**sections, "Parameters": parameters, "Resources": created, "Outputs": outputs | asked}

    def _local_outputs(self) -> Iterator[tuple[str, Any]]:
        resources: dict[str, Any] = self.body["Resources"]
        elsewhere = {name for name, resource in resources.items() if resource["Type"] not in CREATED}
        for name, output in self.body.get("Outputs", {}).items():
            if elsewhere.isdisjoint(references(output["Value"])):
                yield name, output

    def _with_stand_ins(self, expression: Expression, known: StandIns) -> Expression:
        """The expression without references to resources that the local stack lacks."""
        match expression:
            case {"Ref": str(name)}:
                return self._stand_in(name, "Ref", known) or expression
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return self._stand_in(name, attribute, known) or expression
            case dict():
                entries = cast("dict[str, Expression]", expression)
                return {key: self._with_stand_ins(value, known) for key, value in entries.items()}
            case list():
                return [self._with_stand_ins(value, known) for value in cast("list[Expression]", expression)]
            case _:
                return expression

    def _stand_in(self, name: str, attribute: str, known: StandIns) -> Expression | None:
        if (name, attribute) in known:
            return known[name, attribute]
        resource: dict[str, Any] | None = self.body["Resources"].get(name)
        if resource is None or resource["Type"] in CREATED:
            return None
        match resource["Type"], attribute:
            case "AWS::Scheduler::ScheduleGroup", "Ref":
                return resource["Properties"]["Name"]
            case "AWS::IAM::Role", "Arn":
                return {"Fn::Sub": f"arn:${{AWS::Partition}}:iam::${{AWS::AccountId}}:role/${{AWS::StackName}}-{name}"}
            case kind, _:
                raise ValueError(f"{attribute} of {name} ({kind}) is not known locally; add a stand-in for it here.")


def read_template(path: Path, parameters: Mapping[str, str], *, region: str) -> Template:
    """The template as it would be deployed with these parameters; reading an unchanged file again costs nothing."""
    return _translated(path, path.stat().st_mtime_ns, tuple(sorted(parameters.items())), region)


@lru_cache(maxsize=8)
def _translated(path: Path, _changed: int, parameters: tuple[tuple[str, str], ...], region: str) -> Template:
    source: dict[str, Any] = yaml_parse(path.read_text())
    # The translator wants code that is uploaded already; nothing local looks at it.
    source["Globals"]["Function"]["CodeUri"] = "s3://local/package.zip"
    translator = Translator({}, Parser(), boto_session=boto3.Session(region_name=region))
    return Template(translator.translate(source, dict(parameters)))


def references(expression: Expression) -> set[str]:
    """The names of all resources and parameters that an expression refers to."""
    match expression:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            return {name}
        case {"Fn::Sub": str(text)}:
            return {found[1] for found in _PLACEHOLDER.finditer(text)}
        case dict():
            values = cast("dict[str, Expression]", expression).values()
            return {name for value in values for name in references(value)}
        case list():
            return {name for value in cast("list[Expression]", expression) for name in references(value)}
        case _:
            return set()


def referred(expression: Expression) -> str:
    """The one resource that an expression refers to, such as the function behind an event source."""
    names = references(expression)
    if len(names) != 1:
        raise ValueError(f"Expected a reference to one resource, not {expression!r}.")
    return names.pop()
