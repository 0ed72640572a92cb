"""Tasks and their outcomes as texts of queue messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable.errors import ErrorInfo
from durable.model.task import StepTask, TaskOutcome, input_text, outcome_from, task_from

texts = st.text(max_size=20)
numbers = st.floats(0, 1e12)
errors = st.builds(ErrorInfo, type=texts, message=texts, module=texts, data=st.none() | st.dictionaries(texts, texts))
tasks = st.builds(
    StepTask,
    run_id=texts,
    location=texts,
    epoch=st.integers(1, 10**13),
    attempt=st.integers(1, 1000),
    queue=texts,
    name=texts,
    input=texts,
    dispatched_at=numbers,
    timeout=numbers,
    heartbeat=st.none() | numbers,
    idempotency_key=texts,
    headers=st.dictionaries(texts, texts, max_size=3),
    lane=st.none() | texts,
)
outcomes = st.builds(
    TaskOutcome,
    value=st.none() | texts,
    error=st.none() | errors,
    retryable=st.booleans(),
    retry_after=st.none() | numbers,
    failure=st.sampled_from([None, "critical", "rollback"]),
    started_at=numbers,
    worker=texts,
)


@given(tasks)
def test_a_task_is_read_as_it_was_written(task: StepTask) -> None:
    assert task_from(task.to_text()) == task


@given(outcomes)
def test_an_outcome_is_read_as_it_was_written(outcome: TaskOutcome) -> None:
    assert outcome_from(outcome.to_text()) == outcome


def test_an_attempt_is_named_by_location_epoch_and_attempt() -> None:
    task = StepTask(
        run_id="run-1", location="labels/print", epoch=5, attempt=2, queue="default", name="print_label",
        input=input_text([1, "ü"], {"n": None}), dispatched_at=1.5, timeout=60.0, heartbeat=None, idempotency_key="key",
    )  # fmt: skip
    assert (task.id, task.holder) == ("labels/print:5:2", "run-1|labels/print:5:2")


@pytest.mark.parametrize("text", ["", "{}", "null", '{"run_id": 1}', '{"type": "wake", "run_id": "r"}'])
def test_other_texts_are_no_tasks(text: str) -> None:
    with pytest.raises(ValueError, match=r"\d validation error"):
        task_from(text)
