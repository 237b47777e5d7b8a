"""What a person sees of a login: one page before it, and one after it."""

from html import escape
from string import Template

from starlette.responses import HTMLResponse

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_PAGE = Template("""\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 34rem; margin: 15vh auto; padding: 0 1.5rem; }
h1 { font-size: 1.4rem; }
code { overflow-wrap: anywhere; }
</style>
<h1>$title</h1>
$body
</html>
""")


def begin_page(upstream: str, principal: str, place: str, confirmation: str) -> HTMLResponse:
    """Return the page before a login: for what and for whom it is, and what follows from it."""
    return _page(
        f"Log in to {upstream}",
        f"<p>The MCP gateway at <code>{escape(place)}</code> will use <strong>{escape(upstream)}</strong> with the "
        f"account that you log in with now, for everything that <strong>{escape(principal)}</strong> asks for.</p>"
        "<p>Continue only if that is you, and if you asked for it just now.</p>"
        f'<p><a href="?continue={escape(confirmation)}">Continue</a></p>',
    )


def done_page(upstream: str, principal: str) -> HTMLResponse:
    """Return the page after a login."""
    return _page(
        "Logged in",
        f"<p>The gateway can use <strong>{escape(upstream)}</strong> for <strong>{escape(principal)}</strong> now. "
        "You can close this page.</p>",
    )


def failed_page(message: str, remedy: str | None, status: int = 400) -> HTMLResponse:
    """Return the page after a login that failed."""
    return _page("Not logged in", f"<p>{escape(message)}.</p>" + (f"<p>{escape(remedy)}</p>" if remedy else ""), status)


def _page(title: str, body: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(_PAGE.substitute(title=escape(title), body=body), status, _HEADERS)
