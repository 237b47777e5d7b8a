"""The parts of results, by their hashes."""

import hashlib
from typing import Any

import pybase64
import pytest

from gateway.telemetry.audit import digests as module
from gateway.telemetry.audit.digests import Digests, canonical_json

CONTENT = bytes(range(256)) + b"\xfb\xff\xfe"
STANDARD = pybase64.b64encode_as_string(CONTENT)


def part(block: Any) -> dict[str, Any]:
    (found,) = Digests().of_result({"content": [block]})
    return found


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    "data",
    [
        STANDARD,
        STANDARD.rstrip("="),
        STANDARD.replace("+", "-").replace("/", "_"),
        "\n".join(STANDARD[at : at + 76] for at in range(0, len(STANDARD), 76)),
        f"data:image/png;base64,{STANDARD}",
    ],
)
@pytest.mark.parametrize("kind", ["image", "audio", "resource"])
def test_media_is_hashed_as_its_bytes_however_it_is_written(data, kind):
    block = {"type": kind, "data": data} if kind != "resource" else {"type": kind, "resource": {"blob": data}}
    assert part(block) == {"type": kind, "bytes": len(CONTENT), "sha256": sha256(CONTENT)}


@pytest.mark.parametrize("data", ["not base64!", "é", "\ud800", "A"])
def test_what_is_no_base64_is_hashed_as_text(data):
    found = part({"type": "image", "data": data})
    assert found["broken"] is True
    assert found["sha256"] == sha256(data.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    "block", [None, 1, "text", [], {}, {"type": 1}, {"type": "image"}, {"type": "image", "data": 1}, {"type": "new"}]
)
def test_whatever_a_server_returns_has_a_hash(block):
    assert part(block)["sha256"] == sha256(canonical_json(block))


def test_every_kind_of_result_has_its_parts():
    text = {"type": "text", "text": "a"}
    for result in (
        {"content": [text]},
        {"contents": [{"uri": "x://y", "text": "a"}]},
        {"messages": [{"role": "user", "content": text}]},
        {"messages": [{"role": "user", "content": [text]}]},
    ):
        assert [one["sha256"] for one in Digests().of_result(result)] == [sha256(b"a")]
    assert [one["type"] for one in Digests().of_result({"content": "odd", "messages": [1]})] == ["unknown"]


def test_what_two_results_share_is_hashed_once(monkeypatch):
    image = {"type": "image", "data": STANDARD}
    decoded = 0

    def counting(encoded: str) -> bytes:
        nonlocal decoded
        decoded += 1
        return pybase64.b64decode(encoded)

    monkeypatch.setattr(module, "_decoded", counting)
    digests = Digests()
    assert digests.of_result({"content": [image]}) == digests.of_result({"content": [image, dict(image)]})[:1]
    assert decoded == 1
