"""The Gemini API's files (https://ai.google.dev/api/files; google-genai 3.4.0, files.py and _extra_utils.py)."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from gateway.content.provider_files.provider import LARGEST, FetchedFile, Provider, Requests
from gateway.errors import ProviderFileError

BASE_URL = "https://generativelanguage.googleapis.com"

_LIVES = 47 * 3_600.0
"""The Gemini API always keeps a file for 48 hours (https://ai.google.dev/gemini-api/docs/files)."""

_PROCESSING_SECONDS = 120.0
_ASK_EVERY = 1.0


class GeminiFiles(Provider):
    """Files of one Gemini API key, kept for 48 hours.

    An upload is complete once it is ACTIVE: video and sound are PROCESSING for a while, and `upload` waits for them.
    Only files that a model made can be fetched. `pause` is awaited with the seconds to wait between two polls.
    """

    scheme = "gemini-file"
    lives = _LIVES

    def __init__(
        self, api_key: str, base_url: str = BASE_URL, *, pause: Callable[[float], Awaitable[object]] = anyio.sleep
    ) -> None:
        super().__init__(Requests("Gemini Files", base_url, {"x-goog-api-key": api_key}))
        self._pause = pause

    async def upload(self, content: bytes, *, media_type: str, name: str) -> str:
        """Upload in one piece by the resumable protocol; return the name, such as `files/abc`."""
        start = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(len(content)),
            "X-Goog-Upload-Header-Content-Type": media_type,
        }
        body = {"file": {"displayName": name, "mimeType": media_type}}
        begun = await self._requests.send("POST", "/upload/v1beta/files", headers=start, json=body)
        address = self._requests.text_in(dict(begun.headers), "x-goog-upload-url")
        finish = {"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"}
        done = await self._requests.send("POST", address, foreign=True, headers=finish, content=content)
        return await self._active(self._requests.json(done).get("file"))

    async def _active(self, file: Any) -> str:
        name = self._requests.text_in(file, "name")
        deadline = time.monotonic() + _PROCESSING_SECONDS
        while (state := self._requests.text_in(file, "state")) == "PROCESSING":
            if time.monotonic() > deadline:
                raise ProviderFileError(f"Gemini Files still processes the file after {_PROCESSING_SECONDS:g} s")
            await self._pause(_ASK_EVERY)
            file = self._requests.json(await self._requests.send("GET", f"/v1beta/{name}"))
        if state != "ACTIVE":
            raise ProviderFileError(f"Gemini Files could not process the file: it is {state}")
        return name

    async def fetch(self, file_id: str, *, max_bytes: int = LARGEST) -> FetchedFile:
        """GET /v1beta/files/{id}:download."""
        return await self._requests.fetch(f"/v1beta/{file_id}:download?alt=media", max_bytes)

    async def delete(self, file_id: str) -> None:
        """DELETE /v1beta/files/{id}."""
        await self._requests.send("DELETE", f"/v1beta/{file_id}")
