"""The table of model APIs: every wire form is in it, and the rule that converters stand alone covers each of them."""

import tomllib
from pathlib import Path
from typing import get_args

from gateway.core.model_apis.registry import APIS, REQUEST_APIS, STRICT_APIS
from gateway.core.profiles.model_profile import Writing

PACKAGE = "gateway.core.model_apis"
PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_every_wire_form_has_its_module() -> None:
    assert set(APIS) == set(get_args(Writing))
    for apis in (APIS, REQUEST_APIS, STRICT_APIS):
        assert [f"{PACKAGE}.{name}" for name in apis] == [getattr(api, "__name__", None) for api in apis.values()]


def test_no_converter_may_import_another() -> None:
    contracts = tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    alone = next(contract["modules"] for contract in contracts if contract["id"] == "converters")
    assert {f"{PACKAGE}.{name}" for name in APIS} <= set(alone)
