"""What a page of the console sends: a form, or JSON for programs."""

from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import Request

from gateway.core.model.json_values import is_dict
from gateway.errors import InvalidRequest
from gateway.serving.console.read_form import MOST_PAIRS, ReadForm, parse_json, read_form
from gateway.serving.console.request_body import is_json, read_body

MOST_BYTES = 4 * 1024 * 1024


class Submitted(NamedTuple):
    """Controls of a form, by name, and all pairs; or the JSON object that a program has sent."""

    pairs: tuple[tuple[str, str], ...] = ()
    data: dict[str, Any] | None = None

    def text(self, name: str) -> str:
        """Return the text of a control that is not a part of the value; empty if there is none."""
        if self.data is not None:
            given = self.data.get(name)
            return given if isinstance(given, str) else ("1" if given is True else "")
        return next((value for key, value in reversed(self.pairs) if key == name), "")

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
    text = body.decode("utf-8", "replace")
    if is_json(request):
        try:
            return Submitted(data=_object(parse_json(text)))
        except ValueError as error:
            raise InvalidRequest(str(error), remedy="send a JSON object") from None
    try:
        return Submitted(tuple(parse_qsl(text, keep_blank_values=True, max_num_fields=2 * MOST_PAIRS)))
    except ValueError:
        raise InvalidRequest("this form has too many fields", remedy="give it as JSON") from None


def _object(value: Any) -> dict[str, Any]:
    if not is_dict(value):
        raise InvalidRequest("this is not a JSON object", remedy='give one, such as {"name": "value"}')
    return value
