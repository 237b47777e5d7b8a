"""`[content]`, `[fetch]`, `[media]`, `[files]` and `[limits]`: what is done with content, and how much."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from gateway.config.section import Section
from gateway.config.setting_types import Bytes, Seconds
from gateway.core.model.quantities import Duration

ALLOWED_URL = r"https?://(?:\*\.)?(?:[^\s/?#@:*\[\]]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[^\s?#]*)?"
"""A scheme, a host (or every host below a domain), a port, and a path in which `*` is any text."""


class ContentSettings(Section):
    """How content is taken in, and how it is served over HTTP."""

    key: Annotated[str, Field(min_length=16)] | None = None
    """The key for signing links, at least 16 characters; omitted: created once, and kept for this user."""
    link_lifetime: Annotated[Duration, Field(gt=0, le=31_536_000)] = 3_600.0
    """Minimum seconds for which a link is valid; up to a quarter more, so that equal links stay equal."""
    max_upload_bytes: Bytes = 1024 * 1024 * 1024
    """Maximum size of an upload."""
    folders: tuple[Path, ...] = ()
    """Folders from which `gateway_put` may read files by path, following links; relative to the file."""


class FetchSettings(Section):
    """The URLs that the gateway may fetch itself; none by default."""

    allow: tuple[str, ...] = ()
    """URLs that may be fetched, as patterns: `https://images.example.com/public/*`, `https://*.example.com`.

    `*` in a path is any text.
    """
    allow_private: tuple[str, ...] = ()
    """Allowed hosts that may have private addresses, such as `127.0.0.1:9000` or `minio.lan`."""
    max_bytes: Bytes = 64 * 1024 * 1024
    """Maximum size of content that is fetched."""
    timeout: Seconds = 60.0
    """Seconds for a whole fetch."""
    idle: Seconds = 15.0
    """Seconds without a byte, for resolving a name, and for connecting."""
    redirects: Annotated[int, Field(ge=0, le=20)] = 5
    """Maximum number of redirects that are followed, each subject to the same rules."""

    @field_validator("allow")
    @classmethod
    def _are_patterns(cls, allow: tuple[str, ...]) -> tuple[str, ...]:
        for place, pattern in enumerate(allow, start=1):
            if not re.fullmatch(ALLOWED_URL, pattern):
                raise ValueError(f"entry {place} is not a pattern such as https://images.example.com/public/*")
        return allow


class MediaSettings(Section):
    """Limits on the processing of images and documents."""

    workers: Annotated[int, Field(ge=1, le=64)] = 2
    """Maximum number of concurrent jobs, each in its own process. One more may run for a caller without any."""
    timeout: Seconds = 20.0
    """Seconds for one job; then its process is killed."""
    result_timeout: Seconds = 60.0
    """Seconds for all jobs of one result in total, not counting the wait for a process; the rest is skipped."""
    max_pixels: Annotated[int, Field(gt=0)] = 60_000_000
    """Maximum pixels of an image that is decoded, checked in its header."""
    max_input_bytes: Bytes = 64 * 1024 * 1024
    """Maximum size of an image, document or sound that is decoded."""
    memory_bytes: Bytes = 1024 * 1024 * 1024
    """Memory of one worker process, if the platform can limit it."""


class FilesSettings(Section):
    """Files for hosts that cannot show content but can open files: for profiles that show it as `file`.

    Off until `dir` or `roots` is set. Without them, such content is a line with its handle; with them, the line has the
    path too.
    """

    dir: Path | None = None
    """The folder for the files, relative to the file; created if necessary, for this user only."""
    roots: bool = False
    """Whether they go into a folder `.mcp-gateway` in the host's own workspace (its first root), if it reports one."""
    expires: Seconds = 3_600.0
    """Seconds after which a file is removed; when the gateway ends, all are."""
    max_bytes: Bytes = 256 * 1024 * 1024
    """Maximum size of all files; the oldest are removed."""


class LimitSettings(Section):
    """Limits on results, and on content in arguments."""

    result_bytes: Bytes = 64 * 1024 * 1024
    """Maximum size of a result from an upstream; a larger one becomes an error that names the size."""
    blocks: Annotated[int, Field(gt=0)] = 1_000
    """Maximum number of content blocks in one result."""
    argument_bytes: Bytes = 32 * 1024 * 1024
    """Maximum size of content named by an argument, unless the tool is given a link to it."""
    call_bytes: Bytes = 64 * 1024 * 1024
    """The same for all arguments of one call in total."""
