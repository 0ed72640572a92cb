"""A failure is kept as data and looks the same live and on replay; `except CardDeclined` works."""

import dataclasses
import sys
import types

import pytest

from durable import failures
from durable.errors import DurableError, ErrorInfo, NonRetryableError, StepFailed, WaitTimeout
from durable.model.limits import ERROR_CAUSES


class CardDeclined(Exception):
    def __init__(self, *, code: str) -> None:
        super().__init__(f"declined: {code}")
        self.code = code
        self.connection = object()


class Frozen(Exception):
    def __init__(self) -> None:
        super().__init__("frozen")
        self.field = 1


@dataclasses.dataclass(frozen=True)
class FrozenData(Exception):
    field: int


class Named(Exception):
    @property
    def name(self) -> str:
        return "the user's"


class WithOwnNew(Exception):
    def __new__(cls, *args):
        raise AssertionError("a user's __new__ is not called")


class Picky(Exception):
    def __init_subclass__(cls) -> None:
        raise RuntimeError("no subclasses")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Outer:
    class Inner(Exception):
        pass


def replayed(error: BaseException) -> StepFailed:
    """As a step raises it, live and on replay."""
    return failures.step_failed("charge", 4, failures.record(error))


def test_a_step_failure_is_caught_by_the_class_of_the_steps_own_error() -> None:
    with pytest.raises(CardDeclined) as caught:
        raise replayed(CardDeclined(code="51"))
    assert caught.value.code == "51"
    assert isinstance(caught.value, StepFailed)
    assert type(caught.value).__name__ == "CardDeclined"
    assert caught.value.name == "charge"
    assert caught.value.attempts == 4
    assert str(caught.value) == 'step "charge" failed after 4 attempts: CardDeclined: declined: 51'
    assert caught.value.matches(CardDeclined)
    assert not hasattr(caught.value, "connection")


@pytest.mark.parametrize(
    ("error", "cls"),
    [
        (FileNotFoundError(2, "gone"), OSError),
        (KeyError("x"), LookupError),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), ValueError),
        (Outer.Inner("x"), Outer.Inner),
        (Frozen(), Frozen),
        (FrozenData(3), FrozenData),
        (Named("x"), Named),
        (NonRetryableError("no"), NonRetryableError),
        (TimeoutError(), TimeoutError),
    ],
)
def test_any_loaded_exception_class_is_found(error, cls) -> None:
    failed = replayed(error)
    assert isinstance(failed, cls)
    assert isinstance(failed, StepFailed)
    assert (failed.name, failed.attempts, failed.kind) == ("charge", 4, "exhausted")


def test_a_users_own_new_is_not_called() -> None:
    record = ErrorInfo(type="WithOwnNew", module=__name__, message="x")
    assert isinstance(failures.step_failed("s", 1, record), WithOwnNew)


def test_the_same_class_is_made_once() -> None:
    assert type(replayed(CardDeclined(code="1"))) is type(replayed(CardDeclined(code="2")))


@pytest.mark.parametrize(
    "record",
    [
        ErrorInfo(type="Gone", module=__name__, message="x"),
        ErrorInfo(type="X", module="no.such.module", message="x"),
        ErrorInfo(type="Picky", module=__name__, message="x"),
        ErrorInfo(type="test_it.<locals>.Local", module=__name__, message="x"),
        ErrorInfo(type="KeyboardInterrupt", module="builtins", message=""),
        ErrorInfo(type="int", module="builtins", message=""),
        ErrorInfo(type="ExceptionGroup", module="builtins", message=""),
        ErrorInfo(type="StepFailed", module="durable.errors", message=""),
    ],
)
def test_a_class_that_cannot_be_used_leaves_a_plain_failure(record) -> None:
    failed = failures.step_failed("s", 1, record)
    assert type(failed) is StepFailed
    assert failed.error == record


def test_nothing_is_imported_to_find_a_class(monkeypatch) -> None:
    module = types.ModuleType("lazy_shop")
    module.__dict__["__getattr__"] = lambda name: pytest.fail(f"{name} was asked for")
    monkeypatch.setitem(sys.modules, "lazy_shop", module)
    failures.step_failed("s", 1, ErrorInfo(type="CardDeclined", module="lazy_shop", message=""))
    failures.step_failed("s", 1, ErrorInfo(type="MessageError", module="email.errors_not_loaded", message=""))
    assert "email.errors_not_loaded" not in sys.modules


def test_a_class_that_is_loaded_later_is_found_then(monkeypatch) -> None:
    record = ErrorInfo(type="Late", module="late_shop", message="x")
    assert type(failures.step_failed("s", 1, record)) is StepFailed
    module = types.ModuleType("late_shop")
    late = type("Late", (Exception,), {"__module__": "late_shop"})
    module.__dict__["Late"] = late
    monkeypatch.setitem(sys.modules, "late_shop", module)
    assert isinstance(failures.step_failed("s", 1, record), late)


def test_the_attributes_that_are_data_are_kept() -> None:
    record = failures.record(CardDeclined(code="51"))
    assert (record.type, record.module, record.message) == ("CardDeclined", __name__, "declined: 51")
    assert record.data == {"code": "51"}


def raised(error: Exception, *, inside: Exception, how: str) -> Exception:
    """The error as it is after it was raised while another one was being handled."""
    try:
        try:
            raise inside  # noqa: TRY301 - the nesting is what is made here
        except Exception as caught:
            if how == "from":
                raise error from caught
            if how == "from None":
                raise error from None
            raise error  # noqa: B904 - the context is what is wanted
    except Exception as outer:  # noqa: BLE001 - the same
        return outer


@pytest.mark.parametrize("how", ["from", "while"])
def test_the_cause_or_else_the_context_is_kept(how) -> None:
    record = failures.record(raised(CardDeclined(code="1"), inside=ValueError("inner"), how=how))
    assert record.cause is not None
    assert (record.cause.type, record.cause.message) == ("ValueError", "inner")


def test_a_suppressed_context_is_no_cause() -> None:
    record = failures.record(raised(CardDeclined(code="1"), inside=ValueError("inner"), how="from None"))
    assert record.cause is None


def test_the_chain_of_causes_is_kept_to_a_depth() -> None:
    chain: BaseException = ValueError("0")
    for number in range(1, 20):
        following = ValueError(str(number))
        following.__cause__ = chain
        chain = following
    depth, link = 0, failures.record(chain)
    while link.cause is not None:
        depth, link = depth + 1, link.cause
    assert depth == ERROR_CAUSES


def test_what_is_kept_has_a_limit() -> None:
    error = ValueError("x" * 10_000)
    error.__dict__.update(big="y" * 100_000, small=1)
    record = failures.record(error)
    assert record.message.endswith("(cut)")
    assert len(record.message) < 2_100
    assert record.data == {"small": 1}


def test_broken_messages_do_not_hide_the_error() -> None:
    assert failures.record(Unprintable()).message == "<Unprintable without a printable message>"
    assert failures.record(ValueError("\ud800")).message == "?"


def test_a_step_failure_that_ends_a_run_is_recorded_under_its_public_name() -> None:
    record = failures.record(replayed(CardDeclined(code="51")))
    assert (record.type, record.module) == ("StepFailed", "durable.errors")
    assert record.cause is not None
    assert record.cause.matches(CardDeclined)
    rebuilt = failures.rebuild(record)
    assert isinstance(rebuilt, CardDeclined)
    assert isinstance(rebuilt, StepFailed)
    assert (rebuilt.name, rebuilt.attempts) == ("charge", 4)


def test_errors_are_rebuilt_without_calling_their_constructor() -> None:
    rebuilt = failures.rebuild(failures.record(CardDeclined(code="51")))
    assert isinstance(rebuilt, CardDeclined)
    assert (rebuilt.code, str(rebuilt)) == ("51", "declined: 51")
    timed_out = failures.rebuild(failures.record(WaitTimeout("approve")))
    assert isinstance(timed_out, WaitTimeout)
    assert timed_out.location == "approve"


def test_an_error_of_an_unknown_class_keeps_its_text() -> None:
    rebuilt = failures.rebuild(ErrorInfo(type="Gone", module="nowhere", message="it was there"))
    assert type(rebuilt) is DurableError
    assert str(rebuilt) == "Gone: it was there"
