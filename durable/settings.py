"""The settings of a deployment: a frozen model and the only reader of the environment."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from durable.errors import InvalidInput
from durable.model.limits import SQS_DELAY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX: Final = "DURABLE_"
DEFAULT_QUEUE: Final = "default"
"""What remote steps call their queue if nothing else is said."""
_POWERTOOLS: Final = {"POWERTOOLS_SERVICE_NAME": "service", "POWERTOOLS_LOG_LEVEL": "log_level"}


def _object(value: Any) -> Any:
    """What a variable holds that is a JSON object."""
    return json.loads(value) if isinstance(value, str) else value


class Settings(BaseModel):
    """Where the deployment's resources are and which code it runs."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_min_length=1)

    app: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    """The App object, as `package.module:name`."""
    table: str
    runs_queue_url: str
    runs_queue_arn: str
    timers_queue_url: str
    steps_queue_url: str | None = None
    """Where remote steps go, for the function of this deployment; without one only queues of their own take any."""
    steps_queues: Annotated[dict[str, str], BeforeValidator(_object)] = Field(default_factory=dict[str, str])
    """Addresses of queues of their own, by the name that `queue=` has: other workers serve them."""
    token_secret_arn: str | None = None
    """The secret in Secrets Manager that signs tokens."""
    token_secret: SecretStr | None = None
    """That secret itself, where there is no Secrets Manager; goes first."""
    public_url: str | None = Field(default=None, pattern=r"^https?://[^\s?#]+$")
    """Where outside parties reach the API: what addresses of callbacks and webhooks begin with."""
    bucket: str | None = None
    """Where large values lie; without one they are refused, and `ctx.offload` with them."""
    schedule_group: str
    schedule_role_arn: str
    timers_threshold: float = Field(default=SQS_DELAY_SECONDS, gt=0, le=SQS_DELAY_SECONDS)
    """Timers that are due in more seconds than this go to EventBridge Scheduler."""
    index_shards: int = Field(default=4, ge=1, le=100)
    """Partitions of each index of the table: may be raised at any time, never lowered."""
    service: str = "durable"
    """What log records name as their origin: Powertools' own variable, POWERTOOLS_SERVICE_NAME."""
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], BeforeValidator(str.upper)] = "INFO"
    """The least severe records that are kept: Powertools' own variable, POWERTOOLS_LOG_LEVEL."""
    log_format: Literal["json", "text"] = "json"
    """For machines, or for people at a terminal."""
    code_version: str | None = None
    """Changes with every deployment: blocked runs are tried again under another one."""

    def steps_queue_of(self, name: str) -> str | None:
        """The address of the queue that workers of this name receive from; None where it has none of its own."""
        return self.steps_queues.get(name) or (self.steps_queue_url if name == DEFAULT_QUEUE else None)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, *, app: str | None = None) -> Settings:
        """Reads `DURABLE_*`; raises `InvalidInput` naming every variable that is missing or wrong.

        `app` goes before the variable of that name.
        The code version is `DURABLE_CODE_VERSION`; without it the handlers derive one from the source files.
        """
        source = os.environ if environment is None else environment
        values = {name.removeprefix(_PREFIX).lower(): text for name, text in source.items() if name.startswith(_PREFIX)}
        values |= {field: source[name] for name, field in _POWERTOOLS.items() if name in source}
        values = {name: text for name, text in values.items() if text} | ({} if app is None else {"app": app})
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            faults = "; ".join(
                f"{_variable('_'.join(map(str, fault['loc'])))}: {fault['msg']}" for fault in error.errors()
            )
            raise InvalidInput("the environment of this function", faults) from error


def _variable(field: str) -> str:
    """The variable that a field is read from."""
    return next((name for name, of in _POWERTOOLS.items() if of == field), f"{_PREFIX}{field.upper()}")
