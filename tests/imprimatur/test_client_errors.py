"""A class for every code of the service, in the same relation to one another."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import service
from imprimatur import errors
from service.base.errors import ImprimaturError
from service.requests.problems import FRAMEWORK, INTERNAL_ERROR


def every(kind):
    return {kind}.union(*(every(each) for each in kind.__subclasses__()))


@pytest.fixture(scope="module")
def of_the_service():
    """Every error class that a module under service/ defines and a reply can name."""
    for module in pkgutil.walk_packages(service.__path__, "service."):
        source = Path(module.module_finder.path, f"{module.name.rpartition('.')[2]}.py")
        if source.is_file() and re.search(r"^    code = ", source.read_text(encoding="utf-8"), re.MULTILINE):
            importlib.import_module(module.name)
    return {
        kind
        for kind in every(ImprimaturError)
        if kind.__module__.startswith("service.") and kind is not ImprimaturError and "local" not in kind.__module__
    }


def test_every_code_of_the_service_has_a_class(of_the_service):
    assert len(of_the_service) > 30
    written = {
        code
        for path in Path(service.__path__[0]).rglob("*.py")
        for code in re.findall(r"problem\(\s*\d{3}, \"(\w+)\"", path.read_text(encoding="utf-8"))
    }
    codes = (
        {kind.code for kind in of_the_service}
        | written
        | {code for _, code, _ in FRAMEWORK.values()}
        | {INTERNAL_ERROR}
    )
    for code in codes:
        made = errors.ApiError(409, code, "a sentence", {"a": 1})
        assert type(made) is not errors.ApiError, f"{code} has no class in imprimatur/errors.py"
        assert (type(made).default_code, made.status, made.code, str(made), made.values) == (
            code,
            409,
            code,
            "a sentence",
            {"a": 1},
        )


def test_what_is_a_kind_of_another_is_one_here_too(of_the_service):
    client_class = {kind.default_code: kind for kind in every(errors.ApiError)}
    for kind in of_the_service:
        for base in kind.__mro__[1:]:
            if base in of_the_service:
                assert issubclass(client_class[kind.code], client_class[base.code]), kind


def test_a_code_of_a_newer_service_is_still_an_error_with_its_code():
    made = errors.ApiError(418, "teapot", "short and stout")
    assert (type(made), made.code, made.values) == (errors.ApiError, "teapot", {})
