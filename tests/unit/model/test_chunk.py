"""Which chunks of a stream count, and how their ids sort."""

from durable.model.chunk import ChunkBody, before, chunk_from, chunk_id, counting, execution_of


def body(text: str, source: str = "", execution: str = "", number: int = 1) -> ChunkBody:
    return ChunkBody(text=text, source=source, execution=execution, number=number)


def texts(*bodies: ChunkBody) -> list[str]:
    return [kept.text for kept in counting(bodies)]


def test_chunks_of_a_later_execution_replace_those_of_the_earlier_ones() -> None:
    first, second = execution_of(9, 1), execution_of(10, 1)
    assert texts(body("a", "step", first, 1), body("b", "step", second, 1), body("c", "step", first, 2)) == ["b"]


def test_a_later_attempt_of_one_turn_is_a_later_execution() -> None:
    assert execution_of(9, 2) < execution_of(9, 10) < execution_of(10, 1)


def test_a_chunk_that_is_stored_twice_counts_once() -> None:
    assert texts(body("a"), body("b", number=2), body("a"), body("c", "poll[1]/")) == ["a", "b", "c"]


def test_executions_of_one_step_do_not_touch_another() -> None:
    assert texts(body("a", "one", execution_of(1, 1)), body("b", "two", execution_of(2, 1))) == ["a", "b"]


def test_ids_sort_by_time_then_turn_then_number() -> None:
    ids = [chunk_id(0.9, 3, 1), chunk_id(1.0, 2, 2), chunk_id(1.0, 2, 10), chunk_id(1.0, 3, 1), chunk_id(10.0, 1, 1)]
    assert ids == sorted(ids)


def test_before_lies_behind_older_chunks_and_ahead_of_newer_ones() -> None:
    place = before(chunk_id(100.0, 1, 1), 2.0)
    assert chunk_id(97.9, 9, 9) < place < chunk_id(98.0, 1, 1)
    assert before(chunk_id(1.0, 1, 1), 2.0) < chunk_id(0.0, 1, 1)


def test_a_body_comes_back_as_it_was() -> None:
    whole = body('{"a": 1}', "step", execution_of(1, 2), 7)
    assert chunk_from(whole.to_text()) == whole
