"""OpenAI's Files API (https://platform.openai.com/docs/api-reference/files; openai 3.52.0, resources/files.py)."""

from gateway.content.provider_files.provider import LARGEST, FetchedFile, Provider, Requests

BASE_URL = "https://api.openai.com/v1"

_KEPT_SECONDS = 7 * 24 * 3_600
_MARGIN_SECONDS = 3_600


class OpenAIFiles(Provider):
    """Files of one OpenAI project. They are uploaded with the purpose `user_data`, and expire after a week.

    OpenAI returns only files that its models made. For files of that purpose it answers "Not allowed to download files
    of purpose: user_data", and `fetch` raises ProviderFileError with these words.
    """

    scheme = "openai-file"
    lives = float(_KEPT_SECONDS - _MARGIN_SECONDS)

    def __init__(self, api_key: str, base_url: str = BASE_URL) -> None:
        super().__init__(Requests("OpenAI Files", base_url, {"Authorization": f"Bearer {api_key}"}))

    async def upload(self, content: bytes, *, media_type: str, name: str) -> str:
        """POST /files; return the id."""
        form = {
            "purpose": "user_data",
            "expires_after[anchor]": "created_at",
            "expires_after[seconds]": str(_KEPT_SECONDS),
        }
        response = await self._requests.send("POST", "/files", data=form, files={"file": (name, content, media_type)})
        return self._requests.text_in(self._requests.json(response), "id")

    async def fetch(self, file_id: str, *, max_bytes: int = LARGEST) -> FetchedFile:
        """GET /files/{id}/content."""
        return await self._requests.fetch(f"/files/{file_id}/content", max_bytes)

    async def delete(self, file_id: str) -> None:
        """DELETE /files/{id}."""
        await self._requests.send("DELETE", f"/files/{file_id}")
