"""The body of a request to the console: read within a bound, before anything is made of it."""

from starlette.requests import Request

from gateway.errors import InvalidRequest


async def read_body(request: Request, most_bytes: int, too_large: str, remedy: str | None = None) -> bytes:
    """Return the body. Raises InvalidRequest, in the words of `too_large`, if it has more than `most_bytes`."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most_bytes:
            raise InvalidRequest(too_large, remedy=remedy)
    return bytes(body)


def is_json(request: Request) -> bool:
    """Whether the body is said to be JSON; otherwise it is a form."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
