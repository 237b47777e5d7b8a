"""A real HTTP API with an OpenAPI document: mixed media, uploads, errors, pages, redirects, and what goes wrong."""

import gzip
import json
import math
import struct
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import anyio
import uvicorn
from PIL import Image
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route


def png(size: tuple[int, int] = (40, 30), colour: str = "tomato") -> bytes:
    """A picture."""
    file = BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def wav() -> bytes:
    """A tone."""
    file = BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(n / 5))) for n in range(800)))
    return file.getvalue()


PNG, WAV = png(), wav()
PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
PETS = [{"id": number, "name": f"pet {number}"} for number in range(1, 8)]


def path_item(method: str, operation_id: str, **more: Any) -> dict[str, Any]:
    operation = {"operationId": operation_id, "responses": {"200": {"description": "ok"}}, **more}
    return {method: operation}


def parameter(name: str, place: str = "query", schema: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema or {"type": "string"}, **more}


def document(version: str = "3.0.3", **more: Any) -> dict[str, Any]:
    """The API's own description."""
    pet = {"$ref": "#/components/schemas/Pet"}
    json_of = {"application/json": {"schema": pet}}
    return {
        "openapi": version,
        "info": {"title": "Pets", "version": "2.1", "description": "Pets, and what they look like."},
        "servers": [{"url": "/v1"}],
        "paths": {
            "/pets": {
                "get": {
                    "operationId": "listPets",
                    "tags": ["pets"],
                    "summary": "List pets",
                    "parameters": [
                        {"$ref": "#/components/parameters/Limit"},
                        parameter("page", schema={"type": "integer", "minimum": 0, "exclusiveMinimum": True}),
                        parameter("tag", schema={"type": "array", "items": {"type": "string"}}),
                        parameter("api_key"),
                        parameter("X-Trace", "header"),
                        parameter("Authorization", "header"),
                    ],
                    "responses": {
                        "200": {
                            "description": "ok",
                            "content": {"application/json": {"schema": {"type": "array", "items": pet}}},
                        }
                    },
                },
                "post": {
                    "operationId": "addPet",
                    "tags": ["pets"],
                    "requestBody": {"required": True, "content": json_of},
                    "responses": {"201": {"description": "made", "content": json_of}},
                },
            },
            "/pets/{petId}": {
                "parameters": [parameter("petId", "path", {"type": "integer"}, required=True)],
                "get": {
                    "operationId": "getPet",
                    "tags": ["pets"],
                    "responses": {"200": {"description": "ok", "content": json_of}},
                },
                "delete": {"operationId": "deletePet", "responses": {"204": {"description": "gone"}}},
            },
            "/pets/{petId}/photo": {
                "get": {
                    "operationId": "getPhoto",
                    "tags": ["media"],
                    "parameters": [parameter("petId", "path", {"type": "integer"}, required=True)],
                    "responses": {"200": {"description": "ok", "content": {"image/png": {}}}},
                },
                "post": {
                    "operationId": "uploadPhoto",
                    "parameters": [parameter("petId", "path", {"type": "integer"}, required=True)],
                    "requestBody": {
                        "required": True,
                        "content": {
                            "multipart/form-data": {
                                "schema": {
                                    "type": "object",
                                    "required": ["photo"],
                                    "properties": {
                                        "photo": {"type": "string", "format": "binary", "description": "the photo"},
                                        "caption": {"type": "string"},
                                        "tags": {"type": "array", "items": {"type": "string"}},
                                        "about": {"type": "object", "properties": {"by": {"type": "string"}}},
                                    },
                                },
                                "encoding": {"photo": {"contentType": "image/png, image/jpeg"}},
                            }
                        },
                    },
                    "responses": {"200": {"description": "ok"}},
                },
                "put": {
                    "operationId": "replacePhoto",
                    "parameters": [parameter("petId", "path", {"type": "integer"}, required=True)],
                    "requestBody": {"content": {"image/*": {"schema": {"type": "string", "format": "binary"}}}},
                    "responses": {"200": {"description": "ok"}},
                },
            },
            "/files/{path}": path_item("get", "getFile", parameters=[parameter("path", "path", required=True)]),
            "/voice": path_item("get", "getVoice", tags=["media"]),
            "/report": path_item("get", "getReport", tags=["media"]),
            "/unknown": path_item("get", "getUnknown"),
            "/text": {**path_item("get", "getText"), **path_item("head", "headText")},
            "/nothing": path_item("get", "getNothing"),
            "/large": path_item("get", "getLarge"),
            "/zipped": path_item("get", "getZipped"),
            "/slow": path_item("get", "getSlow"),
            "/broken": path_item("get", "getBroken"),
            "/status/{code}": path_item("get", "getStatus", parameters=[parameter("code", "path", required=True)]),
            "/moved": path_item("get", "getMoved"),
            "/elsewhere": path_item("get", "getElsewhere"),
            "/circles": path_item("get", "getCircles"),
            "/echo": path_item(
                "get",
                "echo",
                parameters=[
                    parameter("list", schema={"type": "array"}),
                    parameter("piped", schema={"type": "array"}, style="pipeDelimited", explode=False),
                    parameter("filter", schema={"type": "object"}, style="deepObject"),
                    parameter("flag", schema={"type": "boolean"}),
                    {"name": "q", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
                    parameter("X-Request", "header"),
                    parameter("session", "cookie"),
                ],
            ),
            "/form": path_item(
                "post",
                "sendForm",
                requestBody={
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {"type": "object", "properties": {"name": {"type": "string"}}}
                        }
                    }
                },
            ),
            "/raw": path_item("post", "sendText", requestBody={"content": {"text/plain": {}}}),
        },
        "components": {
            "parameters": {"Limit": parameter("limit", schema={"type": "integer", "nullable": True})},
            "schemas": {
                "Pet": {
                    "type": "object",
                    "required": ["id", "name"],
                    "properties": {
                        "id": {"type": "integer", "readOnly": True},
                        "name": {"type": "string", "nullable": True, "example": "Rex"},
                        "mother": {"$ref": "#/components/schemas/Pet"},
                        "friends": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}},
                    },
                }
            },
            "securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "api_key"}},
        },
        **more,
    }


class Api:
    """The API while it runs: what it was asked, and the document that it serves, which a test may change."""

    def __init__(self) -> None:
        self.url = ""
        self.document: Any = document()
        self.asked: list[Request] = []
        self.bodies: list[bytes] = []
        self.documents = 0
        """How often the document was sent."""
        self.elsewhere = "https://other.example/file.png?sig=1"
        self.wants_key: str | None = None
        self.cancelled = anyio.Event()

    @property
    def last(self) -> Request:
        return self.asked[-1]

    def routes(self) -> list[Route]:
        return [
            Route("/openapi.json", self._document),
            Route("/redirected.json", lambda _: RedirectResponse("/openapi.json")),
            Route("/far.json", lambda _: RedirectResponse(self.elsewhere)),
            Route("/v1/pets/{pet}/photo", self._photo, methods=["GET", "POST", "PUT"]),
            Route("/v1/{path:path}", self._any, methods=["GET", "HEAD", "POST", "PUT", "DELETE"]),
        ]

    async def _document(self, request: Request) -> Response:
        self.asked.append(request)
        content = self.document if isinstance(self.document, bytes) else json.dumps(self.document).encode()
        etag = f'"{hash(content)}"'
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304)
        self.documents += 1
        return Response(content, media_type="application/json", headers={"etag": etag})

    async def _photo(self, request: Request) -> Response:
        self.asked.append(request)
        if request.method == "GET":
            return Response(PNG, media_type="image/png")
        if request.method == "PUT":
            content = await request.body()
            return JSONResponse({"size": len(content), "type": request.headers["content-type"]})
        fields: dict[str, Any] = {}
        async with request.form() as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    content = await value.read()
                    fields[name] = {"same": content == PNG, "file": value.filename, "type": value.content_type}
                else:
                    fields.setdefault(name, []).append(value)
        return JSONResponse(fields)

    async def _any(self, request: Request) -> Response:
        self.asked.append(request)
        self.bodies.append(await request.body())
        path = request.path_params["path"]
        if self.wants_key is not None and request.query_params.get("api_key") != self.wants_key:
            return JSONResponse({"error": "no key"}, 401, headers={"www-authenticate": "ApiKey"})
        match path.split("/")[0]:
            case "pets" if path == "pets" and request.method == "GET":
                page = int(request.query_params.get("page", 1))
                link = {"link": f'<{self.url}/v1/pets?page={page + 1}&api_key=k>; rel="next", </v1/pets>; rel="first"'}
                return JSONResponse(PETS[(page - 1) * 2 : page * 2], headers=link if page < 3 else {})
            case "pets" if request.method == "DELETE":
                return Response(status_code=204)
            case "pets" if request.method == "POST":
                return JSONResponse({"id": 9, **json.loads(self.bodies[-1])}, 201, {"location": "/v1/pets/9"})
            case "pets":
                return JSONResponse({"id": int(path.split("/")[1]), "name": None})
            case "voice":
                return Response(WAV, media_type="audio/wav")
            case "report":
                named = {"content-disposition": 'attachment; filename="../annual report.pdf"'}
                return Response(PDF, media_type="application/pdf", headers=named)
            case "unknown":
                return Response(PNG, media_type="application/octet-stream")
            case "text":
                headers = {"set-cookie": "session=of-somebody; Path=/"}
                return Response("Grüße".encode("latin-1"), 200, headers, "text/plain; charset=iso-8859-1")
            case "nothing":
                return Response(status_code=204)
            case "large":
                return StreamingResponse((b"x" * 65_536 for _ in range(64)), media_type="application/octet-stream")
            case "zipped":
                bomb = gzip.compress(b'{"a": "' + b" " * 8_000_000 + b'"}')
                return Response(bomb, media_type="application/json", headers={"content-encoding": "gzip"})
            case "slow":
                return await self._slow()
            case "broken":
                return Response(b'{"half', media_type="application/json")
            case "status":
                code = int(path.split("/")[1])
                headers = {"retry-after": "30"} if code == 429 else {}
                return JSONResponse({"error": "that is how it is"}, code, headers=headers)
            case "moved":
                return RedirectResponse("/v1/pets/5", 302)
            case "circles":
                return RedirectResponse("/v1/circles", 307)
            case "elsewhere":
                return RedirectResponse(self.elsewhere, 302)
            case "files":
                return PlainTextResponse(f"{request.scope['raw_path'].decode()}")
            case _:
                said = {name: request.query_params.getlist(name) for name in request.query_params}
                shown = {"query": said, "cookies": request.cookies, "type": request.headers.get("content-type")}
                return JSONResponse({**shown, "body": self.bodies[-1].decode(), "x": request.headers.get("x-request")})

    async def _slow(self) -> Response:
        async def slowly() -> AsyncIterator[bytes]:
            try:
                yield b"a"
                await anyio.sleep(60)
            finally:
                self.cancelled.set()

        return StreamingResponse(slowly())


@asynccontextmanager
async def running_api(api: Api | None = None) -> AsyncIterator[Api]:
    """Serve the API on a free port of this machine."""
    api = api or Api()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    await listener.aclose()
    config = uvicorn.Config(Starlette(routes=api.routes()), port=port, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    api.url = f"http://127.0.0.1:{port}"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server._serve)
        while not server.started:  # noqa: ASYNC110 - it says so in no other way
            await anyio.sleep(0.01)
        try:
            yield api
        finally:
            server.should_exit = server.force_exit = True
