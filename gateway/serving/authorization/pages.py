"""The pages that people see: HTML without scripts, in a browser of any size, light or dark."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from string import Template

from starlette.responses import HTMLResponse, Response

_STYLE = """
:root { color-scheme: light dark; --back: #f3f4f6; --card: #fff; --text: #16181d; --soft: #5b6270; --line: #dfe2e8;
  --main: #2f5bd7; --on-main: #fff; --warn: #8a4b00; --warn-back: #fff4e0; }
@media (prefers-color-scheme: dark) { :root { --back: #101216; --card: #1a1d23; --text: #eceef2; --soft: #a2a9b8;
  --line: #333945; --main: #86a5ff; --on-main: #0c1020; --warn: #ffc670; --warn-back: #33270f; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.25rem; background: var(--back);
  color: var(--text); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { width: 100%; max-width: 27rem; background: var(--card); border: 1px solid var(--line); border-radius: 14px;
  padding: clamp(1.25rem, 6vw, 2rem); }
.from { margin: 0 0 .75rem; color: var(--soft); font-size: .875rem; }
h1 { margin: 0 0 1rem; font-size: 1.35rem; line-height: 1.3; text-wrap: balance; }
h2 { margin: 1.25rem 0 .25rem; font-size: .875rem; color: var(--soft); font-weight: 600; }
p { margin: 0 0 .75rem; }
ul { margin: 0; padding-left: 1.2rem; }
dl { margin: 0; border-top: 1px solid var(--line); }
dl div { display: flex; flex-wrap: wrap; gap: 0 1rem; justify-content: space-between; padding: .55rem 0;
  border-bottom: 1px solid var(--line); }
dt { color: var(--soft); }
dd { margin: 0; font-weight: 600; }
.note, .fault { border-radius: 10px; padding: .7rem .9rem; margin: 1rem 0; font-size: .9375rem;
  background: var(--warn-back); color: var(--warn); }
label { display: block; margin: 1rem 0 .3rem; font-weight: 600; }
input { width: 100%; padding: .7rem .8rem; font: inherit; color: inherit; background: var(--back);
  border: 1px solid var(--line); border-radius: 10px; }
.actions { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1.25rem 0 0; }
button, .button { flex: 1 1 9rem; padding: .75rem 1rem; font: inherit; font-weight: 600; text-align: center;
  text-decoration: none; border-radius: 10px; border: 1px solid var(--line); background: transparent; color: inherit;
  cursor: pointer; }
button.main { background: var(--main); border-color: var(--main); color: var(--on-main); }
:focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
.end { margin: 1.25rem 0 0; color: var(--soft); font-size: .875rem; }
"""

_PAGE = Template("""\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>$title</title>
<style>$style</style>
<main>
<p class="from">$gateway</p>
<h1>$title</h1>
$body
</main>
</html>
""")

_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode("ascii")


def page(gateway: str, title: str, body: str, status: int = 200, forms_to: Iterable[str] = ()) -> Response:
    """Return a page. `body` is HTML, the rest is text; `forms_to` are sources that its forms may lead to."""
    policy = {
        "default-src": "'none'",
        "style-src": f"'sha256-{_STYLE_HASH}'",
        "form-action": " ".join(["'self'", *forms_to]),
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
    return HTMLResponse(
        _PAGE.substitute(title=escape(title), style=_STYLE, gateway=escape(gateway), body=body),
        status,
        {
            "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
            "X-Frame-Options": "DENY",
            "X-Content-Type-Options": "nosniff",
            # Not `no-referrer`: browsers would then send `Origin: null` with the form.
            "Referrer-Policy": "same-origin",
            "Cache-Control": "no-store",
            # No Cross-Origin-Opener-Policy: hosts that open this in a window of its own wait for a message from it.
        },
    )


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph; `kind` is a class of the style sheet."""
    role = ' role="alert"' if kind == "fault" else ""
    return f'<p class="{kind}"{role}>{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of names and values."""
    rows = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    return f"<dl>{''.join(rows)}</dl>"


def listing(heading: str, items: Sequence[str]) -> str:
    """Return a list below a heading."""
    return f"<h2>{escape(heading)}</h2><ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def form(csrf: str, fields: str, buttons: Sequence[tuple[str, str]], *, is_main: bool = True) -> str:
    """Return a form that is sent to the page's own address.

    Each button is the value of `action` and its text. Enter presses the first one, which stands out if `is_main`.
    """
    stands_out = ' class="main"' if is_main else ""
    shown = (
        f'<button name="action" value="{escape(value)}"{stands_out if place == 0 else ""}>{escape(text)}</button>'
        for place, (value, text) in enumerate(buttons)
    )
    return (
        f'<form method="post"><input type="hidden" name="csrf" value="{escape(csrf)}">'
        f'{fields}<div class="actions">{"".join(shown)}</div></form>'
    )


def field(name: str, label: str, kind: str, completion: str, value: str = "") -> str:
    """Return a field of a form, with its label."""
    return (
        f'<label for="{name}">{escape(label)}</label><input id="{name}" name="{name}" type="{kind}" '
        f'autocomplete="{completion}" autocapitalize="none" spellcheck="false" value="{escape(value)}" required>'
    )


def link(address: str, text: str) -> str:
    """Return a link in the form of a button."""
    return f'<p class="actions"><a class="button" href="{escape(address)}" rel="noreferrer">{escape(text)}</a></p>'
