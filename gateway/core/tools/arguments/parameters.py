"""Types that describe a tool's parameters that take content: place, kind, and the form that the tool requires."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from gateway.core.model.kinds import Kind
from gateway.core.model.media_types import normalise

Form = Literal["base64", "data-uri", "named-data-uri", "path", "url", "object", "openai-file"]
"""The form in which a tool requires content.

`base64` and `data-uri`: as text (`named-data-uri` with a `name` parameter, as in `x-mcp-file`). `path`: of a private
temporary file. `url`: of a signed link. `object`: kind, handle_id, mime_type, byte_size, display_name and source.
`openai-file`: download_url, file_id, mime_type and file_name.
"""

Path: TypeAlias = tuple[str | None, ...]
"""The place of a parameter in the arguments: names of members, and None for each item of a list."""

Place: TypeAlias = tuple[str | int, ...]
"""The place of a value in the arguments of one call: names of members, and positions in lists."""


@dataclass(frozen=True)
class Parameter:
    """One parameter that takes content.

    `kind` None: any. `accepts`: media types, such as `image/*`; empty: any of the kind. `beside` is the sibling member
    that names the media type. `takes_urls`: the tool accepts URLs there itself, so they are left to it.
    """

    path: Path
    form: Form
    kind: Kind | None = None
    accepts: tuple[str, ...] = ()
    max_bytes: int | None = None
    beside: str | None = None
    takes_urls: bool = False

    def takes(self, kind: Kind, media_type: str | None) -> bool:
        """Whether content of this kind and type may be given. Content of an unknown kind may."""
        if self.kind not in (None, "other", kind) and kind != "other":
            return False
        known = normalise(media_type)
        return not self.accepts or known is None or any(fnmatchcase(known, pattern) for pattern in self.accepts)


@dataclass(frozen=True)
class PossibleForms:
    """The forms in which content may be given to one upstream.

    `handles`: whether it may be given at all. `fetched`: URLs are fetched for it. `links`: a URL can be made for stored
    content. `files`: it runs on this machine, so it can open paths. `host_files`: the host fills in `openai/fileParams`
    itself.
    """

    handles: bool = True
    fetched: bool = False
    links: bool = False
    files: bool = False
    host_files: bool = False

    def can(self, form: Form) -> bool:
        """Whether content can be given in this form."""
        match form:
            case "path":
                return self.files
            case "url":
                return self.links
            case "openai-file":
                return self.links and not self.host_files
            case _:
                return True


EVERYTHING = PossibleForms(fetched=True, links=True, files=True)


def path_words(path: Sequence[str | int | None]) -> str:
    """Format a path: `items[].photo`, or in a call `items[2].photo`."""
    words = ""
    for step in path:
        if step is None:
            words += "[]"
        elif isinstance(step, int):
            words += f"[{step}]"
        else:
            words += f".{step}" if words else step
    return words
