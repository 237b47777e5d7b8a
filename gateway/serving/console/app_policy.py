"""The content security policy under which the page of an MCP App is drawn.

The page is sandboxed into an origin of its own, whatever it declares. Without leave it reaches nothing but itself; with
it, the domains that its resource declares, as the specification of MCP Apps asks hosts to build it:
https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx (Host Behavior).
"""

import re
from collections.abc import Mapping, Sequence

_SOURCE = re.compile(
    r"(?:https|wss)://(?:\*\.)?+[a-z0-9-]++(?:\.[a-z0-9-]++)*+(?::[0-9]{1,5})?+", re.IGNORECASE | re.ASCII
)
_LONGEST = 300
_MOST = 50


def usable_domains(domains: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the domains that may stand in a policy, by purpose: encrypted ones, at most 50 for each.

    Everything else, such as `*`, a path or what would end a directive, is left out.
    """
    found = {
        purpose: tuple(
            each for each in (one[:_LONGEST].rstrip("/") for one in names[:_MOST]) if _SOURCE.fullmatch(each)
        )
        for purpose, names in domains.items()
    }
    return {purpose: names for purpose, names in found.items() if names}


_FEATURES = {
    "camera": "camera",
    "clipboardWrite": "clipboard-write",
    "geolocation": "geolocation",
    "microphone": "microphone",
}
"""The features of browsers that a page can ask for, by the extension's name for the permission."""


def usable_permissions(asked: Sequence[str]) -> tuple[str, ...]:
    """Return the permissions that a page can be given, of those that it asks for."""
    return tuple(one for one in _FEATURES if one in asked)


def frame_features(permissions: Sequence[str]) -> str:
    """Return the `allow` of a frame whose page has these permissions. Its origin is opaque: only `*` stands for it."""
    return "; ".join(f"{_FEATURES[one]} *" for one in permissions)


def permissions_policy(permissions: Sequence[str]) -> str:
    """Return the `Permissions-Policy` of a page that has these permissions."""
    given = {feature: "*" if one in permissions else "()" for one, feature in _FEATURES.items()}
    return ", ".join(f"{feature}={who}" for feature, who in {**given, "clipboard-read": "()"}.items())


def page_policy(domains: Mapping[str, Sequence[str]], *, runs_code: bool = False) -> str:
    """Return the policy of a page that may reach these domains (`usable_domains`): by default, none.

    `resource` ones are loaded from, `connect` ones are sent requests, `frame` ones are framed, and `baseUri` ones may
    be the base of its addresses. `runs_code`: it may run code that it makes from text (`eval`) or has as `data:`. The
    specification's policy has neither; its own example of a host allows both.
    """
    loaded, asked = domains.get("resource", ()), domains.get("connect", ())
    made = ("'unsafe-eval'", "data:") if runs_code else ()
    directives = {
        # `allow-forms` lets a page handle its own forms; `form-action` keeps them from being sent anywhere.
        "sandbox": ("allow-scripts", "allow-forms"),
        "default-src": ("'none'",),
        "script-src": ("'unsafe-inline'", "blob:", *made, *loaded),
        "style-src": ("'unsafe-inline'", *loaded),
        "img-src": ("data:", "blob:", *loaded),
        "font-src": ("data:", *loaded),
        "media-src": ("data:", "blob:", *loaded),
        "connect-src": ("data:", "blob:", *asked),
        "worker-src": ("blob:", *made[1:]),
        "frame-src": domains.get("frame", ()) or ("'none'",),
        "base-uri": domains.get("baseUri", ()) or ("'none'",),
        "form-action": ("'none'",),
        "frame-ancestors": ("'self'",),
    }
    return "; ".join(" ".join((name, *values)) for name, values in directives.items())
