"""The matrix as JSON: what is written is read again, and what is not in the form is refused with the place."""

import json
from datetime import date
from typing import Any

import jsonschema_rs
import pytest

from gateway.core.profiles.matrix import (
    MATRIX_FORMAT,
    MOST_BYTES,
    CaseEvidence,
    CaseRecord,
    Cell,
    matrix_json_schema,
    matrix_text,
    read_matrix,
)
from gateway.errors import InvalidRequest

RECORD = CaseRecord(
    host="acme-ide",
    title="Acme IDE",
    version="1.2",
    case="error",
    returns="an error with a PNG",
    directly=Cell(verdict="lost", shown=0, of=1, why="nothing arrives"),
    evidence=CaseEvidence(level="run", reference="make lab, acme 1.2"),
    date=date(2026, 11, 23),
)
PLAIN: dict[str, Any] = json.loads(matrix_text([RECORD]))["records"][0]


def file(**changed: Any) -> bytes:
    return json.dumps({"format": 1, "records": [{**PLAIN, **changed}]}).encode()


def test_what_is_written_is_read_and_fits_the_schema() -> None:
    text = matrix_text([RECORD, RECORD.model_copy(update={"gateway": Cell(verdict="seen")})])
    assert [line.count('"host"') for line in text.splitlines()] == [0, 0, 0, 1, 1, 0, 0]
    assert read_matrix(text.encode(), "a.json")[0] == RECORD
    schema = matrix_json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema_rs.validator_for(schema).validate(json.loads(text))


@pytest.mark.parametrize(
    "changed",
    [
        {"host": "../../etc/passwd"},
        {"host": "Acme IDE"},
        {"title": ""},
        {"title": "Acme\x1b[31m"},
        {"title": "Acme\u202eEDI"},
        {"version": "1\n2"},
        {"case": "a/b"},
        {"directly": {"verdict": "perfect"}},
        {"directly": {"verdict": "seen", "shown": 3}},
        {"directly": {"verdict": "seen", "shown": 3, "of": 2}},
        {"evidence": {"level": "run", "reference": "x" * 2_001}},
        {"evidence": {"level": "guessed", "reference": "x"}},
        {"date": "yesterday"},
        {"read": {"png": "perhaps"}},
        {"secret": "sk-1"},
    ],
)
def test_a_record_that_is_not_in_the_form_is_refused_with_its_place(changed: dict[str, Any]) -> None:
    read_matrix(file(), "sent.json")
    with pytest.raises(InvalidRequest, match=r"^sent\.json: records\.0\.") as refused:
        read_matrix(file(**changed), "sent.json")
    assert "\x1b" not in str(refused.value)
    assert "docs/matrix/schema.json" in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"format": 1}', b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_no_matrix_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"^sent\.json: "):
        read_matrix(content, "sent.json")


def test_a_newer_file_and_one_that_is_too_large_are_refused() -> None:
    newer = json.dumps({"format": MATRIX_FORMAT + 1, "records": [{"new": 1}]}).encode()
    with pytest.raises(
        InvalidRequest, match=rf"has format {MATRIX_FORMAT + 1}, and this version knows {MATRIX_FORMAT}"
    ):
        read_matrix(newer, "sent.json")
    with pytest.raises(InvalidRequest, match="bytes"):
        read_matrix(b" " * (MOST_BYTES + 1), "sent.json")
