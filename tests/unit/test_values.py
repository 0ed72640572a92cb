import pytest

from durable.channels import Event, Signal, StateKey, Update
from durable.errors import ErrorInfo, InvalidName, StepFailed
from durable.values import Break, Continue, Failed, MapResult, Ok, Skipped

DECLINED = ErrorInfo(type="CardDeclined", module="shop", message="no")


def test_an_ok_unwraps_to_its_value_and_a_failed_raises() -> None:
    assert Ok(3).unwrap() == 3
    with pytest.raises(StepFailed, match='step "charge" failed after 4 attempts: CardDeclined: no') as caught:
        Failed("exhausted", "charge", 4, DECLINED).unwrap()
    assert caught.value.kind == "exhausted"


def test_outcomes_match_by_position() -> None:
    match Failed("timeout", "charge", 1, DECLINED):
        case Failed("timeout", name, attempts, error):
            assert (name, attempts, error) == ("charge", 1, DECLINED)
        case other:
            pytest.fail(str(other))


def test_the_words_of_a_loop_may_carry_nothing() -> None:
    assert (Break(), Break(3).value, Continue(), Continue("s").state) == (Break(None), 3, Continue(None), "s")


def test_a_map_result_tells_values_and_failures() -> None:
    failed = Failed("critical", "b", 1, DECLINED)
    result = MapResult([Ok(1), failed, Skipped(), Ok(2)])
    assert result.values == [1, 2]
    assert result.failures == [(1, failed)]


def test_typed_names_keep_name_and_type() -> None:
    signal, update = Signal("approve", int | None), Update("rename", str, int)
    assert (signal.name, signal.type) == ("approve", int | None)
    assert (update.type, update.response) == (str, int)
    assert Signal("approve", int | None) == signal
    assert (Event("paid", str).type, StateKey("progress", float).type) == (str, float)


def test_a_typed_name_needs_a_name_and_a_type() -> None:
    with pytest.raises(InvalidName, match="signal name"):
        Signal("", int)
    with pytest.raises(TypeError, match=r'Signal\("approve", ...\) takes a type, not 3'):
        Signal("approve", 3)  # type: ignore[arg-type]
