"""The matrix as JSON: for each host and case, what the host's model saw, and how that is known. Pure.

The files in docs/matrix, and what `mcp-gateway calibrate --export` writes, have this form.
"""

import json
from collections.abc import Iterable
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gateway.core.fact_words import plain
from gateway.core.profiles.calibrate_profile import When
from gateway.errors import InvalidRequest

MATRIX_FORMAT = 1
"""The version of the form. A reader refuses a newer one."""

MOST_BYTES = 4 << 20
"""The largest file that is read: about ten times all that this project has measured."""

Verdict = Literal["seen", "named", "lost", "refused", "failed"]
"""What became of a case, as in docs/frameworks.md."""

_NO_CONTROLS = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]*$"
Words = Annotated[str, Field(pattern=_NO_CONTROLS, max_length=2_000)]
ShortWords = Annotated[str, Field(pattern=_NO_CONTROLS, min_length=1, max_length=200)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._+-]*$", max_length=120)]
CaseName = Annotated[str, Field(pattern=r"^[a-z0-9_]+$", max_length=80)]


class MatrixPart(BaseModel):
    """Base class of what a file contains: frozen, and unknown members are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Cell(MatrixPart):
    """What became of a case.

    `shown` of `of` pictures were shown; `why` says what is not as it should be. `because` is the explanation: what the
    host, or the gateway, cannot do.
    """

    verdict: Verdict
    shown: Annotated[int, Field(ge=0)] | None = None
    of: Annotated[int, Field(gt=0)] | None = None
    why: Words = ""
    because: Words = ""

    @model_validator(mode="after")
    def _counts(self) -> "Cell":
        if (self.shown is None) != (self.of is None) or (self.shown or 0) > (self.of or 0):
            raise ValueError("shown and of go together, and shown is at most of")
        return self


class CaseEvidence(MatrixPart):
    """How a record is known.

    `run`: the host itself was run, by the lab. `calibrated`: its model read codes (`mcp-gateway calibrate`). Others as
    in a profile; from one, only `directly` is known.
    """

    level: Literal["run", "calibrated", "measured", "source", "maintainer", "user_report"]
    reference: Words


class CaseRecord(MatrixPart):
    """One host and one case.

    `host` is a name without blanks, `title` the same in words. `model_api` and `model` are those of the run, where they
    are known; `profile` the one that the gateway used. `returns` says what the case's tool returns. `directly`: without
    the gateway; `gateway`: through it; null: not known. `read` has the blocks of a calibration, and when each was read.
    """

    host: Name
    title: ShortWords
    kind: Literal["host", "framework"] = "host"
    version: ShortWords | None = None
    model_api: CaseName | None = None
    model: ShortWords | None = None
    profile: Name | None = None
    case: CaseName
    returns: ShortWords
    directly: Cell | None = None
    gateway: Cell | None = None
    evidence: CaseEvidence
    date: date
    read: dict[ShortWords, When] | None = None


class Matrix(MatrixPart):
    """A file: its format, and its records."""

    format: Literal[1] = MATRIX_FORMAT
    records: Annotated[tuple[CaseRecord, ...], Field(max_length=20_000)]


def matrix_json_schema() -> dict[str, Any]:
    """Return the published JSON schema of a file (draft 2020-12)."""
    schema = Matrix.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "required": ["format", "records"]}


def matrix_text(records: Iterable[CaseRecord]) -> str:
    """Return the file with these records: one on each line, so that a change of one is a change of one line."""
    lines = ",\n".join(f"  {_line(record)}" for record in records)
    return f'{{\n "format": {MATRIX_FORMAT},\n "records": [\n{lines}\n ]\n}}\n'


def _line(record: CaseRecord) -> str:
    return json.dumps(record.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)


def read_matrix(content: bytes, where: str) -> tuple[CaseRecord, ...]:
    """Return the records of a file.

    Raises:
        InvalidRequest: it is too large, of a newer format, or not in this form; `where` names it.
    """
    if len(content) > MOST_BYTES:
        raise InvalidRequest(f"{where} has {len(content):,} bytes", remedy=f"at most {MOST_BYTES:,} are read")
    try:
        return Matrix.model_validate_json(content).records
    except ValidationError as error:
        if newer := _newer_format(content):
            remedy = "read it with a newer version of the gateway"
            known = f"this version knows {MATRIX_FORMAT}"
            raise InvalidRequest(f"{where} has format {newer}, and {known}", remedy=remedy) from None
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        remedy = "docs/matrix/schema.json has its form"
        raise InvalidRequest(f"{where}: {plain(place, 200)}: {plain(first['msg'], 300)}", remedy=remedy) from None


class _Format(BaseModel):
    format: int


def _newer_format(content: bytes) -> int | None:
    try:
        found = _Format.model_validate_json(content).format
    except ValidationError:
        return None
    return found if found > MATRIX_FORMAT else None
