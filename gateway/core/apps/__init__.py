"""MCP Apps: tools whose results are shown to the user by a page of their upstream, as well as to the model. Pure.

Sources: https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx (the extension),
https://developers.openai.com/apps-sdk/reference (the keys of its predecessor, which ChatGPT still reads).
"""

from gateway.core.apps.page import PAGE_TYPE, PageFacts, page_facts
from gateway.core.apps.readers import Readers, hidden_pictures
from gateway.core.apps.results import (
    AS_IT_CAME,
    FOR_THE_PAGE_ALONE,
    HEAVY_CHARS,
    TAKEN_BY_THE_MODEL,
    AppResult,
    Mirrored,
    TextSize,
    for_app,
    mirrored,
)
from gateway.core.apps.tools import (
    DECLARED,
    Audience,
    assumed_to_show,
    audience,
    for_apps,
    for_host,
    for_the_model,
    pages,
    shows_apps,
    without_pages,
)
from gateway.core.apps.uris import (
    SCHEME,
    SKILL_SCHEME,
    address_in_list,
    inward,
    is_embedded_page,
    is_prefixed,
    outward,
    outward_contents,
    outward_meta,
    outward_prompt,
    outward_result,
    split,
)

__all__ = [
    "AS_IT_CAME",
    "DECLARED",
    "FOR_THE_PAGE_ALONE",
    "HEAVY_CHARS",
    "PAGE_TYPE",
    "SCHEME",
    "SKILL_SCHEME",
    "TAKEN_BY_THE_MODEL",
    "AppResult",
    "Audience",
    "Mirrored",
    "PageFacts",
    "Readers",
    "TextSize",
    "address_in_list",
    "assumed_to_show",
    "audience",
    "for_app",
    "for_apps",
    "for_host",
    "for_the_model",
    "hidden_pictures",
    "inward",
    "is_embedded_page",
    "is_prefixed",
    "mirrored",
    "outward",
    "outward_contents",
    "outward_meta",
    "outward_prompt",
    "outward_result",
    "page_facts",
    "pages",
    "shows_apps",
    "split",
    "without_pages",
]
