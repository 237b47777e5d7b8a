"""Answers of a registry on disk, so that it is asked less often, and can be away. Blocking.

A file an answer, readable by this user alone. One that is damaged, or of another URL, does not count.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.core.model.json_safe import is_finite
from gateway.core.model.json_values import as_dict
from gateway.system.files import write_file
from gateway.system.runtime_dir import PRIVATE_FOLDER

MOST_FILES = 200
_ENDING = ".json"


@dataclass(frozen=True)
class CachedAnswer:
    """A JSON answer, when it came (seconds since the epoch), and its ETag ("" for none)."""

    value: Any
    at: float
    etag: str = ""


class AnswerCache:
    """The cached answers of registries in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, url: str) -> CachedAnswer | None:
        """Return the answer that a URL had, if it is kept."""
        try:
            kept = as_dict(json.loads(self._file(url).read_bytes()))
        except (OSError, ValueError, RecursionError):
            return None
        if kept is None or kept.get("url") != url or not is_finite(kept.get("at")):
            return None
        return CachedAnswer(kept.get("value"), float(kept["at"]), str(kept.get("etag") or ""))

    def keep(self, url: str, answer: CachedAnswer) -> None:
        """Keep an answer, and remove the oldest ones if there are too many. What cannot be written is not kept."""
        with suppress(OSError, RecursionError):
            text = json.dumps({"url": url, "at": answer.at, "etag": answer.etag, "value": answer.value})
            self._folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            write_file(self._file(url), text.encode())
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        files = list(self._folder.glob(f"*{_ENDING}"))
        if len(files) > MOST_FILES:
            for file in sorted(files, key=lambda one: one.stat().st_mtime)[: len(files) - MOST_FILES]:
                file.unlink(missing_ok=True)

    def _file(self, url: str) -> Path:
        return self._folder / f"{hashlib.sha256(url.encode()).hexdigest()}{_ENDING}"
