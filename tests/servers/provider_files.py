"""The file endpoints of OpenAI, Anthropic, the Gemini API and fal.ai in one app, as their pages describe them.

Every request that the real endpoint would refuse is refused in its form. `files` holds what was uploaded, by id; what a
model "made" is put there by the test, since only that can be downloaded.
"""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

KEY = "test-key"


@dataclass
class Kept:
    content: bytes
    media_type: str
    name: str
    made_by_model: bool = False
    looks: int = 0


@dataclass
class FileServer:
    """The four providers. `processing`: how often a Gemini file is PROCESSING before it is ACTIVE."""

    processing: int = 0
    files: dict[str, Kept] = field(default_factory=dict[str, Kept])
    requests: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    foreign_keys: list[str] = field(default_factory=list[str])
    """Paths to which a key was sent that should not get one."""

    def __post_init__(self) -> None:
        self._numbers = count(1)
        self.app = Starlette(
            routes=[
                Route("/v1/files", self._create, methods=["POST"]),
                Route("/v1/files/{id}/content", self._content),
                Route("/v1/files/{id}", self._forget, methods=["DELETE"]),
                Route("/upload/v1beta/files", self._gemini_start, methods=["POST"]),
                Route("/upload/session/{id}", self._gemini_bytes, methods=["POST"]),
                Route("/v1beta/files/{id}:download", self._gemini_content),
                Route("/v1beta/files/{id}", self._gemini_file, methods=["GET", "DELETE"]),
                Route("/storage/upload/initiate", self._fal_start, methods=["POST"]),
                Route("/fal/put/{id}", self._fal_bytes, methods=["PUT"]),
                Route("/fal/files/{id}", self._fal_content),
            ]
        )

    def _id(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers):04d}"

    def _seen(self, request: Request) -> None:
        self.requests.append((request.method, request.url.path))

    def _keyless(self, request: Request) -> None:
        if any(KEY in value for value in request.headers.values()):
            self.foreign_keys.append(request.url.path)

    # -- OpenAI and Anthropic have the same paths; Anthropic's requests name its API's version -----------------------

    async def _create(self, request: Request) -> Response:
        self._seen(request)
        anthropic = "anthropic-version" in request.headers
        if not _authorised(request, anthropic=anthropic):
            return _refused(401, f"Incorrect API key provided: {request.headers.get('authorization', '')}", anthropic)
        async with request.form() as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                return _refused(400, "file: Field required", anthropic)
            kept = Kept(await file.read(), file.content_type or "", file.filename or "")
            asked = {key: value for key, value in form.items() if key != "file"}
        wrong = _wrong_form(asked, anthropic=anthropic) or ("" if kept.content else "the file is empty")
        if wrong:
            return _refused(400, wrong, anthropic)
        file_id = self._id("file_" if anthropic else "file-")
        self.files[file_id] = kept
        told: dict[str, Any] = {"id": file_id, "filename": kept.name}
        if anthropic:
            told |= {"type": "file", "mime_type": kept.media_type, "size_bytes": len(kept.content)}
            told |= {"created_at": "2026-11-21T00:00:00Z", "downloadable": False}
        else:
            told |= {"object": "file", "bytes": len(kept.content), "created_at": 1, "purpose": asked["purpose"]}
        return JSONResponse(told)

    async def _content(self, request: Request) -> Response:
        self._seen(request)
        anthropic = "anthropic-version" in request.headers
        kept = self.files.get(request.path_params["id"])
        if kept is None:
            return _refused(404, f"No such File object: {request.path_params['id']}", anthropic)
        if not kept.made_by_model:
            words = "File is not downloadable" if anthropic else "Not allowed to download files of purpose: user_data"
            return _refused(400, words, anthropic)
        return Response(kept.content, media_type=kept.media_type)

    async def _forget(self, request: Request) -> Response:
        self._seen(request)
        if self.files.pop(request.path_params["id"], None) is None:
            return _refused(404, "No such File object", "anthropic-version" in request.headers)
        return JSONResponse({"id": request.path_params["id"], "deleted": True})

    # -- the Gemini API: https://ai.google.dev/api/files ---------------------------------------------------------------

    async def _gemini_start(self, request: Request) -> Response:
        self._seen(request)
        if request.headers.get("x-goog-api-key") != KEY:
            return _google(403, "PERMISSION_DENIED", "API key not valid.")
        if request.headers.get("x-goog-upload-command") != "start":
            return _google(400, "INVALID_ARGUMENT", "the upload has to be started")
        name = (await request.json())["file"]["displayName"]
        file_id = self._id("g")
        self.files[f"files/{file_id}"] = Kept(b"", request.headers["x-goog-upload-header-content-type"], name)
        self._expected = int(request.headers["x-goog-upload-header-content-length"])
        address = str(request.url_for(self._gemini_bytes.__name__, id=file_id))
        return Response(headers={"x-goog-upload-url": address, "x-goog-upload-status": "active"})

    async def _gemini_bytes(self, request: Request) -> Response:
        self._seen(request)
        self._keyless(request)
        name = f"files/{request.path_params['id']}"
        content = await request.body()
        if request.headers.get("x-goog-upload-command") != "upload, finalize" or len(content) != self._expected:
            return _google(400, "INVALID_ARGUMENT", "the upload is not whole")
        self.files[name].content = content
        return JSONResponse({"file": self._gemini_told(name)}, headers={"x-goog-upload-status": "final"})

    def _gemini_told(self, name: str) -> dict[str, Any]:
        kept = self.files[name]
        kept.looks += 1
        state = "PROCESSING" if kept.looks <= self.processing else "ACTIVE"
        return {"name": name, "mimeType": kept.media_type, "displayName": kept.name, "state": state}

    async def _gemini_file(self, request: Request) -> Response:
        self._seen(request)
        name = f"files/{request.path_params['id']}"
        if name not in self.files:
            return _google(404, "NOT_FOUND", "no such file")
        if request.method == "DELETE":
            del self.files[name]
            return JSONResponse({})
        return JSONResponse(self._gemini_told(name))

    async def _gemini_content(self, request: Request) -> Response:
        self._seen(request)
        kept = self.files.get(f"files/{request.path_params['id']}")
        if kept is None or not kept.made_by_model:
            return _google(400, "INVALID_ARGUMENT", "Only files that were generated can be downloaded.")
        return RedirectResponse(request.url_for(self._fal_content.__name__, id=request.path_params["id"]))

    # -- fal.ai --------------------------------------------------------------------------------------------------

    async def _fal_start(self, request: Request) -> Response:
        self._seen(request)
        if request.headers.get("authorization") != f"Key {KEY}":
            return JSONResponse({"detail": "Authentication is required"}, 401)
        asked = await request.json()
        file_id = self._id("f")
        self.files[file_id] = Kept(b"", asked["content_type"], asked["file_name"])
        return JSONResponse(
            {
                "upload_url": str(request.url_for(self._fal_bytes.__name__, id=file_id)),
                "file_url": str(request.url_for(self._fal_content.__name__, id=file_id)),
            }
        )

    async def _fal_bytes(self, request: Request) -> Response:
        self._seen(request)
        self._keyless(request)
        kept = self.files[request.path_params["id"]]
        if request.headers.get("content-type") != kept.media_type:
            return Response("SignatureDoesNotMatch", 403)
        kept.content = await request.body()
        return Response()

    async def _fal_content(self, request: Request) -> Response:
        self._seen(request)
        self._keyless(request)
        kept = self.files.get(request.path_params["id"]) or self.files.get(f"files/{request.path_params['id']}")
        return Response("gone", 404) if kept is None else Response(kept.content, media_type=kept.media_type)


def _authorised(request: Request, *, anthropic: bool) -> bool:
    if anthropic:
        return request.headers.get("x-api-key") == KEY
    return request.headers.get("authorization") == f"Bearer {KEY}"


def _wrong_form(asked: dict[str, Any], *, anthropic: bool) -> str | None:
    if anthropic:
        unknown = set(asked) - {"expires_in_seconds"}
        return f"{min(unknown)}: Extra inputs are not permitted" if unknown else None
    purposes = ("assistants", "batch", "fine-tune", "vision", "user_data", "evals")
    if asked.get("purpose") not in purposes:
        return "purpose: Field required"
    seconds, anchor = asked.get("expires_after[seconds]"), asked.get("expires_after[anchor]")
    if seconds is not None and not (anchor == "created_at" and 3_600 <= int(seconds) <= 2_592_000):
        return "expires_after is out of range"
    return None


def _refused(status: int, message: str, anthropic: bool) -> Response:
    if anthropic:
        return JSONResponse({"type": "error", "error": {"type": "invalid_request_error", "message": message}}, status)
    return JSONResponse({"error": {"message": message, "type": "invalid_request_error", "code": None}}, status)


def _google(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": {"code": status, "message": message, "status": code}}, status)
