"""What a page of the console sends: a form, or JSON for programs."""

import json
import re
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import Request

from gateway.core.fact_words import plain
from gateway.core.model.json_values import is_dict, is_list, is_object
from gateway.errors import InvalidRequest
from gateway.serving.console.read_form import MOST_PAIRS, ReadForm, parse_json, read_form
from gateway.serving.console.request_body import is_json, read_body

MOST_BYTES = 4 * 1024 * 1024
_HALF_PAIR = re.compile("[\\ud800-\\udfff]")


class Submitted(NamedTuple):
    """Controls of a form, by name, and all pairs; or the JSON object that a program has sent."""

    pairs: tuple[tuple[str, str], ...] = ()
    data: dict[str, Any] | None = None

    def all(self, name: str) -> list[str]:
        """Return all values of a field as texts, in order; in JSON, those of a list, or the one that it is.

        Raises:
            InvalidRequest: one is an object or a list, or cannot be written as a text.
        """
        if self.data is None:
            return [value for key, value in self.pairs if key == name]
        given = self.data.get(name)
        return [_text(name, each) for each in (given if is_list(given) else [given]) if each is not None]

    def text(self, name: str) -> str:
        """Return the value of a field, the last one if there are several; empty if there is none. Raises as `all`."""
        return next(reversed(self.all(name)), "")

    def line(self, name: str) -> str:
        """Return the value of a field without blanks around it. Raises as `all`."""
        return self.text(name).strip()

    def lines(self, name: str) -> list[str]:
        """Return the lines of all values of a field that are not blank. Raises as `all`."""
        return [line.strip() for value in self.all(name) for line in value.splitlines() if line.strip()]

    def texts(self) -> dict[str, str]:
        """Return the value of every field by name. Raises as `all`."""
        names = dict(self.pairs) if self.data is None else self.data
        return {name: self.text(name) for name in names}

    def has(self, name: str) -> bool:
        """Whether there is a field of this name, even an empty one."""
        return name in (dict(self.pairs) if self.data is None else self.data)

    def is_set(self, name: str) -> bool:
        """Whether a box is ticked. Raises as `all`."""
        return self.text(name) not in ("", "false")

    def value(self, name: str = "arguments") -> ReadForm:
        """Return the value that the form stands for, which a program gives under `name`.

        A form that is shown as JSON has a control `json`.

        Raises:
            InvalidRequest: it is not an object, not JSON, or not a form.
        """
        if self.data is not None:
            return ReadForm(_object(self.data.get(name, {})))
        text = next((value for key, value in reversed(self.pairs) if key == "json"), None)
        if text is None:
            return read_form(self.pairs)
        try:
            return ReadForm(_object(parse_json(text) if text.strip() else {}))
        except ValueError as error:
            raise InvalidRequest(str(error), remedy="give a JSON object") from None


async def submitted(request: Request) -> Submitted:
    """Return what was sent with a request. Raises InvalidRequest if it is too large, or not of these kinds."""
    too_large = f"this is larger than {MOST_BYTES // (1024 * 1024)} MiB"
    body = await read_body(request, MOST_BYTES, too_large, "give large content as a file")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("this is not UTF-8", remedy="send a form or JSON in UTF-8") from None
    if is_json(request):
        try:
            return Submitted(data=_object(parse_json(text)))
        except ValueError as error:
            raise InvalidRequest(str(error), remedy="send a JSON object") from None
    try:
        return Submitted(tuple(parse_qsl(text, keep_blank_values=True, max_num_fields=2 * MOST_PAIRS)))
    except ValueError:
        raise InvalidRequest("this form has too many fields", remedy="give it as JSON") from None


def _text(name: str, value: Any) -> str:
    if is_list(value) or is_object(value):
        raise InvalidRequest(f"{plain(name, 100)} is not a text", remedy="give a text, or a list of texts")
    text = value if isinstance(value, str) else json.dumps(value)
    if not text.isascii() and _HALF_PAIR.search(text):
        raise InvalidRequest(f"{plain(name, 100)} cannot be written: half a surrogate pair is not a character")
    return text


def _object(value: Any) -> dict[str, Any]:
    if not is_dict(value):
        raise InvalidRequest("this is not a JSON object", remedy='give one, such as {"name": "value"}')
    return value
