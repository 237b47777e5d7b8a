"""Shape a result for those who read it at one host: its model, the page of the tool (MCP Apps), or both."""

from collections.abc import Mapping
from typing import Any

from gateway.content.shaping.shaper import Shaped, Shaper
from gateway.core import apps
from gateway.core.profiles.host_profiles import with_useful_handles
from gateway.core.profiles.profile import Profile
from gateway.core.results.lift_result import lift


async def shape_for_readers(
    shaper: Shaper,
    result: Mapping[str, Any],
    profile: Profile,
    owner: str,
    *,
    shows_pages: bool,
    audience: apps.Audience,
    takes_content: bool = False,
) -> Shaped:
    """Shape a result that was recorded for a host of this profile; `audience` is the reader if the host shows pages.

    `takes_content`: the host is offered a tool that takes handles.
    """
    if audience == "app" and shows_pages:  # no model reads it, so it is not shaped
        return Shaped(dict(result), (apps.AS_IT_CAME,), lift(result), (), {})
    has_page = audience == "both" and shows_pages
    profile = with_useful_handles(profile, takes_content=takes_content)
    return await shaper.shape(result, apps.for_host(profile, shows_apps=shows_pages), owner=owner, app=has_page)
