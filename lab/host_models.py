"""The model APIs for real hosts: the stand-ins, and what programs ask of an API beside its model."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

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
        return JSONResponse({"input_tokens": len(await request.body()) // 4})

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


def body_of(raw: bytes, model: str) -> Mapping[str, Any] | None:
    """A recorded body as an object, with the model that the address may have named; None if it is no JSON."""
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    return {"model": model, **value} if isinstance(value, dict) else None
