"""The measured cases on every target: valid, whole, and what docs/models/README.md says of them."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.config.builtin_profiles import model_profiles
from gateway.config.store_settings import StoreSettings
from gateway.content.shaping.turns import LoweredTurn, lower_turn
from gateway.content.store import MemoryStore
from gateway.testing.model_apis import refusals, seen
from gateway.testing.model_apis.histories import history
from tests.core.model_apis import cases, sdk_types

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent
DOCS = HERE.parents[2] / "docs" / "models"
CASES: dict[str, Any] = vars(cases)["CASES"]
SDK = vars(sdk_types)
TARGETS = sorted(model_profiles())
_NAMED = re.compile(r"\[(?:image|audio|video|document) \d+: [^\]]*?handle (?:img|aud|vid|doc|bin)_[0-9a-z]{12}\]")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{120}")
_CARRIERS = frozenset({"data", "url", "image_url", "file_data", "bytes", "images", "input_audio", "document_url"})


def texts(value: Any, key: str = "") -> list[str]:
    """Every string that the model reads as text."""
    if isinstance(value, dict):
        return [found for name, item in value.items() for found in texts(item, name)]
    if isinstance(value, list):
        return [found for item in value for found in texts(item, key)]
    return [value] if isinstance(value, str) and key not in _CARRIERS else []


def tells_the_error(turn: LoweredTurn) -> bool:
    written = json.dumps(turn.messages)
    return any(sign in written for sign in ('"is_error": true', '"status": "error"', '{"error": ', "ERROR: "))


def cell(case: Any, target: str, turn: LoweredTurn) -> str:
    """The word of docs/models/README.md for what became of a case."""
    try:
        SDK["VALIDATORS"].get(target, SDK["openai_chat"])(turn.messages)
    except (ValueError, AssertionError) as error:
        return f"INV: {error}"
    request = history(target, case.calls, turn.messages)
    if refused := refusals(target, request):
        return f"RULE: {refused}"
    read = texts(turn.messages)
    words = "\n".join(read)
    if _BASE64.search(words):
        return "STR"
    if lost := [word for word in case.words if word not in words]:
        return f"DROP: {lost}"
    if case.is_error and not tells_the_error(turn):
        return "err"
    shown, named = len(seen(target, request)), len(set(_NAMED.findall(words)))
    if shown + named != case.pieces:
        return f"PART: {shown} seen and {named} named of {case.pieces}"
    if named:
        return "ok, line" if shown else "line"
    return "ok+" if any(note.text.endswith("into the message after the results") for note in turn.notes) else "ok"


@pytest.mark.parametrize("target", TARGETS)
async def test_every_measured_case_is_valid_and_whole(target: str, golden: Callable[[Path, str], None]) -> None:
    cells: dict[str, str] = {}
    for name, case in CASES.items():
        turn = await lower_turn(case.calls, target, store=MemoryStore(StoreSettings(), key=b"k" * 32))
        cells[name] = cell(case, target, turn)
    assert {name: word for name, word in cells.items() if word not in ("ok", "ok+", "line", "ok, line")} == {}
    golden(DOCS / "cells" / f"{target}.json", json.dumps(cells, indent=2) + "\n")


def test_the_peers_were_measured_on_the_same_cases() -> None:
    peers = tomllib.loads((DOCS / "peers.toml").read_text("utf-8"))
    assert peers["cases"] == list(CASES)
    for row in peers["row"]:
        assert row["target"] in TARGETS
        assert len(row["cells"].split()) == len(CASES), row
