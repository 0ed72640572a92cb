"""Loading the app that the deployment names."""

import sys

import pytest

from durable.app import App
from handlers.bootstrap import AppNotFound, load_app


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        sys.modules.pop(name, None)
        return name

    return write


def test_an_app_is_found_by_its_module_and_name(module):
    name = module("shop_ok", "from durable import App\nshop = App('shop')\n")
    assert isinstance(load_app(f"{name}:shop"), App)


@pytest.mark.parametrize(
    ("text", "attribute", "reason"),
    [
        ("from durable import App\nshop = App('shop')\n", "app", "has no app (apps in it: shop)"),
        ("app = 7\n", "app", "has a app that is a int and no App (apps in it: none)"),
        ("import surely_not_installed\n", "app", "imports surely_not_installed, which is not installed"),
        ("1 / 0\n", "app", "raised ZeroDivisionError: division by zero"),
        ("def app(:\n", "app", "raised SyntaxError"),
    ],
)
def test_what_is_wrong_with_the_module_is_said(module, text: str, attribute: str, reason: str):
    name = module("shop_wrong", text)
    with pytest.raises(AppNotFound) as refused:
        load_app(f"{name}:{attribute}")
    assert reason in str(refused.value)
    assert f"{name}:{attribute}" in str(refused.value)


@pytest.mark.parametrize("name", ["surely_not_there:app", "examples.surely_not_there:app"])
def test_a_module_that_is_not_there_is_named(name: str):
    with pytest.raises(AppNotFound, match=r"there is no module .*surely_not_there"):
        load_app(name)


@pytest.mark.parametrize("name", ["examples.orders.app", "examples.orders.app:", ""])
def test_a_name_of_another_form_is_refused_with_the_right_one(name: str):
    with pytest.raises(AppNotFound, match=r"package\.module:name"):
        load_app(name)
