"""The template as CloudFormation would deploy it with its defaults."""

from pathlib import Path

import pytest

from durable.local.template import Template, read_template

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def template_path() -> Path:
    return ROOT / "template.yaml"


@pytest.fixture(scope="session")
def template(template_path: Path) -> Template:
    return read_template(template_path, {}, region="eu-central-1")
