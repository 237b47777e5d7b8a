"""What a form of the console says: sent by its own pages as a form, or by programs as JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from gateway.core.model.json_values import is_list, is_object
from gateway.errors import InvalidRequest
from gateway.serving.console.request_body import is_json, read_body

LONGEST = 1024 * 1024
"""Maximum size of a form, in bytes."""
_MOST_FIELDS = 10_000


class FormValues(Mapping[str, Sequence[str]]):
    """The values of each field, as texts, in order."""

    def __init__(self, values: Mapping[str, Sequence[str]]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Sequence[str]:
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def text(self, name: str) -> str:
        """Return the value of a field without blanks around it; empty if it was not sent."""
        return next(iter(self.all(name)), "").strip()

    def all(self, name: str) -> Sequence[str]:
        """Return all values of a field."""
        return self._values.get(name, ())

    def lines(self, name: str) -> list[str]:
        """Return the lines of a field that are not blank, or its values if there are several."""
        return [line.strip() for value in self.all(name) for line in value.splitlines() if line.strip()]


async def form_values(request: Request) -> FormValues:
    """Read the form of a request. Raises InvalidRequest if it is too large or malformed."""
    body = await read_body(request, LONGEST, f"a form may have {LONGEST:,} bytes")
    try:
        if is_json(request):
            return FormValues(_of_json(json.loads(body)))
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except (ValueError, RecursionError):
        raise InvalidRequest("the form cannot be read", remedy="send it as a form, or as a JSON object") from None
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return FormValues(values)


def _of_json(value: Any) -> dict[str, list[str]]:
    if not is_object(value):
        raise ValueError("not an object")
    return {str(name): [_text(each) for each in (item if is_list(item) else [item])] for name, item in value.items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    value.encode("utf-8")  # half a surrogate pair is in no file
    return value
