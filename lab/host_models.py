"""The model APIs for real hosts: the stand-ins, and what programs ask of an API beside its model."""

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from gateway.hosts.simulators.pictures import look
from gateway.testing.model_apis.server import ModelServer

_WINDOW = 1_000_000


def host_models(models: ModelServer, names: tuple[str, ...]) -> Starlette:
    """Return an application that serves `models`, lists these model names, and counts tokens."""
    listed = [
        {"id": name, "object": "model", "created": 1_800_000_000, "owned_by": "lab", "context_length": _WINDOW}
        for name in names
    ]

    async def list_models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": listed, "has_more": False})

    async def count(request: Request) -> Response:
        return JSONResponse({"input_tokens": counted_tokens(await request.json())})

    async def count_for_gemini(request: Request) -> Response:
        return JSONResponse({"totalTokens": len(await request.body()) // 4})

    return Starlette(
        routes=[
            Route("/v1/models", list_models, methods=["GET"]),
            Route("/v1/messages/count_tokens", count, methods=["POST"]),
            Route("/v1beta/models/{model}:countTokens", count_for_gemini, methods=["POST"]),
            Mount("/", models),
        ]
    )


def counted_tokens(value: Any) -> int:
    """About what Anthropic's API counts: four characters of text, or 750 pixels of a picture, are a token.

    Claude Code asks for it, and cuts off what is too much: counted by its base64, a picture would be too much at once.
    """
    match value:
        case {"type": "base64", "media_type": str(kind), "data": str(data)} if kind.startswith("image/"):
            found = look(data)
            return math.prod(found.pixels) // 750 if found else len(data) // 4
        case dict():
            return sum(len(name) // 4 + counted_tokens(one) for name, one in cast("dict[str, Any]", value).items())
        case list():
            return sum(map(counted_tokens, cast("list[Any]", value)))
        case _:
            return len(str(value)) // 4


def body_of(raw: bytes, model: str) -> Mapping[str, Any] | None:
    """A recorded body as an object, with the model that the address may have named; None if it is not JSON."""
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    return {"model": model, **value} if isinstance(value, dict) else None
