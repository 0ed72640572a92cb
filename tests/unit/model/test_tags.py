import pytest

from durable.errors import InvalidName, LimitExceeded
from durable.model.tags import check_tags


def test_tags_keep_their_order_and_lose_repetitions() -> None:
    assert check_tags(["b", "a", "b"]) == ("b", "a")


def test_a_text_is_no_list_of_tags() -> None:
    with pytest.raises(InvalidName, match=r'for example \["shop"\]'):
        check_tags("shop")


@pytest.mark.parametrize("tags", [[""], ["a\nb"]])
def test_odd_tags_are_refused(tags) -> None:
    with pytest.raises(InvalidName, match="tag"):
        check_tags(tags)


def test_too_many_and_too_long_tags_are_refused_with_the_limit() -> None:
    with pytest.raises(LimitExceeded, match="11 tags; the limit is 10 tags"):
        check_tags([f"t{n}" for n in range(11)])
    with pytest.raises(LimitExceeded, match="300 bytes; the limit is 256 bytes"):
        check_tags(["x" * 150, "y" * 150])
