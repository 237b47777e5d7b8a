"""The fields of a form, or of a JSON object, that a browser or a program sends with an action."""

import json
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from gateway.core.model.json_values import is_object
from gateway.errors import InvalidRequest
from gateway.serving.console.request_body import is_json, read_body

_MOST_BYTES = 256 * 1024
_MOST_FIELDS = 1_000


async def read_fields(request: Request, most_bytes: int = _MOST_BYTES) -> Mapping[str, str]:
    """Return the fields by name, as texts; of two with one name, the last.

    Raises:
        InvalidRequest: it is longer than `most_bytes`, has too many fields, or is not what it says it is.
    """
    body = await read_body(request, most_bytes, f"the form is longer than {most_bytes:,} bytes")
    if is_json(request):
        return _of_json(body)
    try:
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise InvalidRequest("this is not a form of the console") from None


def _of_json(body: bytes) -> Mapping[str, str]:
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise InvalidRequest("the body is not JSON") from None
    if not is_object(value) or not all(isinstance(one, str | int | float) for one in value.values()):
        raise InvalidRequest("the body is not an object of texts and numbers")
    return {name: _text(one) for name, one in value.items()}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
