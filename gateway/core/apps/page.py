"""Facts about a page in a `resources/read` result: its type, its requests to the host, and its faults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.core.model.base64_text import decoded_size
from gateway.core.model.json_values import as_list, as_object, is_list

PAGE_TYPE = "text/html;profile=mcp-app"
"""The media type of pages, the only one that hosts show."""
_OF_CHATGPT = "text/html+skybridge"

_WIDGET_CSP = "openai/widgetCSP"


@dataclass(frozen=True)
class PageFacts:
    """Facts about a page, known without showing it.

    `domains` are the domains that it asks access to, by purpose (`connect`, `resource`, `frame`, `baseUri`);
    `permissions` are those that it asks for its frame, such as `camera`. `faults` are reasons why hosts do not show it.
    """

    media_type: str | None
    byte_size: int
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    permissions: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def page_facts(contents: Mapping[str, Any]) -> PageFacts:
    """Return the facts about an item of `contents`, as a page."""
    media_type, meta = contents.get("mimeType"), as_object(contents.get("_meta"))
    known = media_type if isinstance(media_type, str) else None
    interface = as_object(meta.get("ui"))
    size = _byte_size(contents)
    faults: list[str] = []
    if _plain_type(known) == _OF_CHATGPT:
        faults.append(f"its type is {known}, which only ChatGPT shows; other hosts show {PAGE_TYPE}")
    elif _plain_type(known) != PAGE_TYPE:
        faults.append(f"its type is {known or 'not given'}, and hosts show only {PAGE_TYPE}")
    if size == 0:
        faults.append("it is empty")
    return PageFacts(
        known,
        size,
        {**_domains(meta.get(_WIDGET_CSP), "_domains"), **_domains(interface.get("csp"), "Domains")},
        tuple(as_object(interface.get("permissions"))),
        tuple(faults),
    )


def _byte_size(contents: Mapping[str, Any]) -> int:
    text, blob = contents.get("text"), contents.get("blob")
    if isinstance(text, str):
        return len(text.encode("utf-8", "surrogatepass"))
    return decoded_size(blob) if isinstance(blob, str) else 0


def _plain_type(media_type: str | None) -> str:
    return "".join((media_type or "").split()).lower()


def _domains(csp: Any, ending: str) -> dict[str, tuple[str, ...]]:
    """Return the domains of a policy, by purpose."""
    found = {key.removesuffix(ending): as_list(value) for key, value in as_object(csp).items() if is_list(value)}
    return {key: names for key, value in found.items() if (names := tuple(str(each) for each in value))}
