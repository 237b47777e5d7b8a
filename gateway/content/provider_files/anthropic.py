"""Anthropic's Files API (https://docs.claude.com/en/api/files-create; anthropic 2.11.0, resources/files.py)."""

from gateway.content.provider_files.provider import LARGEST, FetchedFile, Provider, Requests

BASE_URL = "https://api.anthropic.com"

_VERSION = "2023-06-01"
_KEPT_SECONDS = 7 * 24 * 3_600
_MARGIN_SECONDS = 3_600


class AnthropicFiles(Provider):
    """Files of one Anthropic workspace, uploaded with an expiry of a week (`expires_in_seconds`).

    Anthropic returns only files that its own tools made (`downloadable` in a file's metadata). For other files it
    answers `file_not_downloadable_error`, and `fetch` raises ProviderFileError with these words.
    """

    scheme = "anthropic-file"
    lives = float(_KEPT_SECONDS - _MARGIN_SECONDS)

    def __init__(self, api_key: str, base_url: str = BASE_URL) -> None:
        headers = {"x-api-key": api_key, "anthropic-version": _VERSION}
        super().__init__(Requests("Anthropic Files", base_url, headers))

    async def upload(self, content: bytes, *, media_type: str, name: str) -> str:
        """POST /v1/files; return the id."""
        response = await self._requests.send(
            "POST",
            "/v1/files",
            data={"expires_in_seconds": str(_KEPT_SECONDS)},
            files={"file": (name, content, media_type)},
        )
        return self._requests.text_in(self._requests.json(response), "id")

    async def fetch(self, file_id: str, *, max_bytes: int = LARGEST) -> FetchedFile:
        """GET /v1/files/{id}/content."""
        return await self._requests.fetch(f"/v1/files/{file_id}/content", max_bytes)

    async def delete(self, file_id: str) -> None:
        """DELETE /v1/files/{id}."""
        await self._requests.send("DELETE", f"/v1/files/{file_id}")
