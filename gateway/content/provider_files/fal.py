"""fal.ai's storage (https://docs.fal.ai/model-apis/client: file uploads; fal-client, `upload`)."""

from urllib.parse import urlsplit

from gateway.content.provider_files.provider import LARGEST, FetchedFile, Provider, Requests
from gateway.errors import ProviderFileError

BASE_URL = "https://rest.alpha.fal.ai"

_LIVES = 24 * 3_600.0
"""fal.ai keeps files according to the account's settings; a conversation needs a day."""


class FalStorage(Provider):
    """Files in fal.ai's storage. The id of a file is its address, and anyone who has the address can read the file."""

    scheme = "fal-file"
    lives = _LIVES

    def __init__(self, api_key: str, base_url: str = BASE_URL) -> None:
        self._base_url = base_url
        super().__init__(Requests("fal.ai storage", base_url, {"Authorization": f"Key {api_key}"}))

    async def upload(self, content: bytes, *, media_type: str, name: str) -> str:
        """POST /storage/upload/initiate, then PUT to the address in the answer; return the file's own address."""
        asked = {"content_type": media_type, "file_name": name}
        path = "/storage/upload/initiate?storage_type=fal-cdn-v3"
        begun = self._requests.json(await self._requests.send("POST", path, json=asked))
        address = self._requests.text_in(begun, "upload_url")
        await self._requests.send("PUT", address, foreign=True, content=content, headers={"Content-Type": media_type})
        return self._requests.text_in(begun, "file_url")

    async def fetch(self, file_id: str, *, max_bytes: int = LARGEST) -> FetchedFile:
        """GET the address, without the key. Only addresses of fal.ai are fetched."""
        parts = urlsplit(file_id)
        mine = parts.hostname or ""
        if not (parts.scheme == "https" and mine.endswith((".fal.media", ".fal.ai"))) and not self._is_own(file_id):
            raise ProviderFileError("that is not an address of fal.ai's storage")
        return await self._requests.fetch(file_id, max_bytes, foreign=True, redirects=0)

    def _is_own(self, address: str) -> bool:
        """Whether an address is below the base URL of a self-hosted storage that is compatible with fal.ai's."""
        return self._base_url != BASE_URL and address.startswith(f"{self._base_url.rstrip('/')}/")

    async def delete(self, file_id: str) -> None:
        """Raise ProviderFileError: fal.ai cannot delete files on request; they expire."""
        raise ProviderFileError("fal.ai storage cannot delete files on request: they expire")
