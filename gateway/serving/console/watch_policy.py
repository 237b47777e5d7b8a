"""Let the page of an MCP App tell the console what its policy has blocked: it may never speak for want of that.

A script before all others passes on each `securitypolicyviolation` (https://www.w3.org/TR/CSP3/#violation-events). The
page can tell the same by itself, so the console believes nothing of it.
"""

BLOCKED = "ui/notifications/gateway-blocked"
"""The method of what it sends to the console (`static/apps.js`)."""

_SCRIPT = f"""<script>addEventListener("securitypolicyviolation", (event) => parent.postMessage({{ jsonrpc: "2.0",
method: "{BLOCKED}", params: {{ directive: event.effectiveDirective, uri: event.blockedURI }} }}, "*"));
document.currentScript.remove();</script>""".encode()
_DOCTYPE = b"<!doctype"
_FAR = 4096


def watching(html: bytes) -> bytes:
    """Return a page with the script: after its doctype, without which browsers would draw it otherwise."""
    begin = html[:_FAR].lower().find(_DOCTYPE)
    end = -1 if begin < 0 else html.find(b">", begin, begin + _FAR)
    return html[: end + 1] + _SCRIPT + html[end + 1 :]
