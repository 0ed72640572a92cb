"""Run ids, message ids and names: what is allowed, and how derived ids are made."""

from __future__ import annotations

import hashlib
import re

from durable.errors import InvalidName
from durable.model.limits import NAME_BYTES, RUN_ID_BYTES

PREFIX_OF_ENTITIES = "entity:"
"""Begins the names of the workflows, and the ids of the runs, that hold entities."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@=+~-]*")
_GENERATION = re.compile(r"~([1-9][0-9]*)")
_MESSAGE_ID = re.compile(r"[!-~]+")
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def size_of(text: str) -> int:
    """Bytes of a text, also of one that could not be stored (half a character, a lone surrogate): its refusal comes next."""
    return len(text.encode("utf-8", "surrogatepass"))


def check_run_id(run_id: str) -> str:
    """Gives the id back, or refuses one that could not be a queue group, a key or part of a URL."""
    if size_of(run_id) > RUN_ID_BYTES:
        raise InvalidName("run id", run_id, f"at most {RUN_ID_BYTES} bytes")
    if not _RUN_ID.fullmatch(run_id):
        raise InvalidName("run id", run_id, "letters, digits and . _ : @ = + - only, starting with a letter or digit")
    return run_id


def check_new_run_id(run_id: str) -> str:
    """As `check_run_id`, for an id that a caller chooses: `~` is left to runs that continue others, and entities have their own."""
    if "~" in run_id:
        raise InvalidName("run id", run_id, "no ~: it numbers the runs that continue one another")
    if run_id.startswith(PREFIX_OF_ENTITIES):
        raise InvalidName("run id", run_id, f"no {PREFIX_OF_ENTITIES} at its beginning: it belongs to entities")
    return check_run_id(run_id)


def generation_of(run_id: str, lineage: str | None) -> int:
    """The how-manieth of its lineage a run is; the first is 1 and has the lineage's own id."""
    number = _GENERATION.fullmatch(run_id[run_id.rfind("~") :]) if lineage is not None and "~" in run_id else None
    return 1 if number is None else int(number[1])


def generation_id(lineage: str, number: int | str) -> str:
    """The id of a later run of a lineage, `order-7~2`, or of one that a retry starts, `order-7~r8`; shortened by a hash where it would be too long."""
    suffix = f"~{number}"
    if len(lineage) + len(suffix) <= RUN_ID_BYTES:
        return lineage + suffix
    digest = hashlib.sha256(lineage.encode()).hexdigest()[:32]
    return f"{lineage[: RUN_ID_BYTES - len(digest) - len(suffix) - 1]}.{digest}{suffix}"


def check_message_id(message_id: str) -> str:
    """Gives the id back, or refuses one that could not be a key."""
    if not _MESSAGE_ID.fullmatch(message_id) or len(message_id) > NAME_BYTES:
        raise InvalidName("message id", message_id, f"1 to {NAME_BYTES} visible ASCII characters")
    return message_id


def check_name(what: str, name: str) -> str:
    """Gives a name back, or refuses one that is empty, too long or has control characters."""
    if not name or size_of(name) > NAME_BYTES:
        raise InvalidName(what, name, f"1 to {NAME_BYTES} bytes")
    if not name.isprintable():
        raise InvalidName(what, name, "printable characters only")
    return name


def derived_id(parent: str, *parts: str) -> str:
    """An id that is always the same for the same parts; hashed where it would be too long or hold other characters."""
    whole = ".".join((parent, *parts))
    if len(whole.encode()) <= RUN_ID_BYTES and _RUN_ID.fullmatch(whole):
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:32]
    return f"{parent[: RUN_ID_BYTES - len(digest) - 1]}.{digest}"


def ulid(milliseconds: int, entropy: int) -> str:
    """A 26-character id that sorts by time (https://github.com/ulid/spec): 48 bits of time, 80 of entropy."""
    number = (milliseconds & (1 << 48) - 1) << 80 | entropy & (1 << 80) - 1
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))
