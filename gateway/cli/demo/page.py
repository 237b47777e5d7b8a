"""The demo's report: one HTML file without scripts or external resources."""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from gateway.cli.demo.cases import Case
from gateway.cli.demo.outcome import Cell, Outcome
from gateway.cli.demo.thumbnails import Gallery
from gateway.cli.demo.token_costs import costs_of_all, token_costs
from gateway.core.model.base64_text import decoded_size
from gateway.core.tokens import token_words
from gateway.hosts.simulators.base64_runs import base64_runs
from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenDocument, SeenImage, SeenPart, SeenText
from gateway.hosts.simulators.side import Side, summary

HEAD_CHARS = 420
TAIL_CHARS = 140
MOST_PIECES = 16
NO_WORD = re.compile(r"[^A-Za-z0-9_]")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
Advice: TypeAlias = Mapping[str, Sequence[str]]
"""Suggestions for a server's author by the name of the case, one sentence each."""
FORMS = {
    "json": "dumped as JSON",
    "structured": "structured content",
    "file": "saved to a file",
    "placeholder": "placeholder",
    "error": "error",
    "frame": "the host's own words",
}


def write_page(path: Path, outcome: Outcome, *, advice: Advice | None = None) -> None:
    """Write the report to `path`; see `page`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(outcome, advice=advice), encoding="utf-8")


def page(outcome: Outcome, *, advice: Advice | None = None) -> str:
    """Return the whole report. `advice` is shown below the heading of its case."""
    gallery = Gallery()
    sections = "\n".join(_section(outcome, case, gallery, (advice or {}).get(case.name, ())) for case in outcome.cases)
    style = files("gateway.cli.demo").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>What each host's model gets</title>\n<style>\n{style}\n{gallery.rules()}\n</style></head>\n<body>\n"
        f"{_summary(outcome)}\n<main>\n{sections}\n</main>\n{_foot(outcome)}\n</body></html>\n"
    )


def _summary(outcome: Outcome) -> str:
    total = len(outcome.cells)
    direct, through = outcome.count("direct"), outcome.count("through")
    heads = "".join(f'<th scope="col">{escape(host.title)}</th>' for host in outcome.hosts)
    rows = "\n".join(_summary_row(outcome, case) for case in outcome.cases)
    return f"""<header>
<h1>What each host's model gets</h1>
<p class="lead">The same tool calls, directly and through the gateway: real servers, real transports, the hosts
simulated from what was measured of them.</p>
<div class="scores">
{_score(direct, total, "shown or kept directly", outcome.count_seen("direct"))}
<div class="arrow" aria-hidden="true">→</div>
{_score(through, total, "shown or kept through the gateway", outcome.count_seen("through"))}
</div>
<div class="scroll"><table class="matrix">
<thead><tr><th scope="col">Result</th>{heads}</tr></thead>
<tbody>
{rows}
</tbody></table></div>
<p class="key">Each cell: directly, below it through the gateway.
<span class="chip good">seen by the model</span>
<span class="chip kept">named in a line, and kept for the model to open or hand on</span>
<span class="chip poor">out of the model's sight</span>
<span class="chip bad">lost, failed, or base64 as text</span></p>
{_costs(outcome)}
</header>"""


def _costs(outcome: Outcome) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(cost.host.title)}</th><td>{escape(cost.model)}</td>'
        f"<td>{cost.direct:,}</td><td>{cost.through:,}</td></tr>"
        for cost in costs_of_all(outcome)
        if cost.results
    )
    if not rows:
        return ""
    return f"""<h2>What the results cost</h2>
<p class="about">In tokens of each host's model, estimated for text and by the vendors' formulas for images: all results
together that reach the model on both sides.</p>
<div class="scroll"><table class="matrix costs">
<thead><tr><th scope="col">Host</th><th scope="col">Model</th><th scope="col">Directly</th>
<th scope="col">Through the gateway</th></tr></thead>
<tbody>
{rows}
</tbody></table></div>"""


def _summary_row(outcome: Outcome, case: Case) -> str:
    cells = "".join(
        f'<td><a href="#{_anchor(case, cell.host)}">{_chip(cell.direct)}{_chip(cell.through)}</a></td>'
        for cell in outcome.row(case)
    )
    return f'<tr><th scope="row"><a href="#{_anchor(case)}">{escape(case.name)}</a></th>{cells}</tr>'


def _section(outcome: Outcome, case: Case, gallery: Gallery, advice: Sequence[str]) -> str:
    arguments = ", ".join(f"{key}={value!r}" for key, value in case.arguments.items())
    rows = "\n".join(_row(cell, gallery) for cell in outcome.row(case))
    changes = "".join(f"<li>{escape(_clean(change))}</li>" for change in advice)
    return f"""<section id="{_anchor(case)}">
<h2>{escape(case.name)}</h2>
<p class="about"><code>{escape(case.upstream)}__{escape(case.tool)}({escape(arguments)})</code> {escape(case.shows)}</p>
{f'<ul class="advice">{changes}</ul>' if changes else ""}
<div class="heads"><span>directly</span><span>through the gateway</span></div>
{rows}
</section>"""


def _row(cell: Cell, gallery: Gallery) -> str:
    return f"""<article id="{_anchor(cell.case, cell.host)}">
<h3>{escape(cell.host.title)}</h3>
{_side(cell.direct, "directly", cell, gallery)}
{_side(cell.through, "through the gateway", cell, gallery)}
</article>"""


def _side(side: Side, name: str, cell: Cell, gallery: Gallery) -> str:
    problems = "".join(f"<li>{escape(_clean(problem))}</li>" for problem in side.problems)
    parts = "".join(_parts(side.seen, cell, gallery)) if side.seen else ""
    flag = '<p class="flag">the model is told that the call failed</p>' if side.seen and side.seen.flagged else ""
    return (
        f'<div class="side" data-name="{name}">{_chip(side)}{_cost(side, cell.host)}'
        f"{f'<ul class=problems>{problems}</ul>' if problems else ''}{flag}{parts}</div>"
    )


def _cost(side: Side, host: SimulatedHost) -> str:
    """Say what one side costs each model of the host."""
    costs = token_costs(side, host)
    if not costs:
        return ""
    (_, first), several = costs[0], len({count.total for _, count in costs}) > 1
    words = "; ".join(f"{title}: {token_words(count)}" for title, count in costs) if several else token_words(first)
    return f'<p class="tokens">{escape(words)}</p>'


def _parts(seen: Seen, cell: Cell, gallery: Gallery) -> Iterator[str]:
    if not seen.parts:
        yield '<p class="nothing">nothing</p>'
    for part in seen.parts:
        yield _part(part, cell, gallery)


def _part(part: SeenPart, cell: Cell, gallery: Gallery) -> str:
    match part:
        case SeenImage():
            return _image(part, cell.host, gallery) + _detail(part, cell.case, gallery)
        case SeenAudio():
            return _attachment("♪", "sound", part.media_type, part.data, part.where)
        case SeenDocument():
            return _attachment("▤", "document", part.media_type, part.data, part.where)
        case SeenText():
            label = f"<small>{FORMS[part.form]}</small>" if part.form in FORMS else ""
            return f'<div class="text {part.form}">{label}<pre>{_shortened(part.text)}</pre></div>'


def _image(image: SeenImage, host: SimulatedHost, gallery: Gallery) -> str:
    size = _size(image.data)
    pixels = f"{image.pixels[0]} × {image.pixels[1]}, " if image.pixels else ""
    where = "" if image.where == "in the result" else f", {image.where}"
    refused = None if image.picture or host.can_show(image.media_type) else "model APIs refuse it as it is"
    note = "".join(f" <em>{escape(words)}</em>" for words in (image.note, refused) if words)
    caption = f"{escape(image.media_type)}, {pixels}{size}{where}{note}"
    shown = gallery.add(image)
    if shown is None:
        return f'<figure class="broken"><div>cannot be decoded</div><figcaption>{caption}</figcaption></figure>'
    name, aspect = shown
    warning = " refused" if refused else ""
    return (
        f'<figure><div class="picture {name}{warning}" role="img" aria-label="{escape(image.media_type)}" '
        f'style="aspect-ratio:{aspect:.3f}"></div><figcaption>{caption}</figcaption></figure>'
    )


def _detail(image: SeenImage, case: Case, gallery: Gallery) -> str:
    name = gallery.detail(image, case.detail) if case.detail else None
    if name is None:
        return ""
    return (
        f'<figure><div class="detail {name}" role="img" aria-label="a part of it"></div>'
        "<figcaption>a part of it, pixel for pixel</figcaption></figure>"
    )


def _attachment(sign: str, kind: str, media_type: str, data: str, where: str) -> str:
    return (
        f'<p class="attachment"><b aria-hidden="true">{sign}</b> {kind}: {escape(media_type)}, {_size(data)}, '
        f"{escape(where)}</p>"
    )


def _shortened(text: str) -> str:
    """Prepare text for the page: long pieces lose their middle, base64 is marked and counted."""
    pieces: list[str] = []
    for run in base64_runs(text):
        before, found, after = text.partition(run)
        if found:
            pieces += [_plain(before), f"<mark>{escape(run[:36])}… {len(run):,} characters of base64</mark>"]
            text = after
    pieces.append(_plain(text))
    if len(pieces) > MOST_PIECES:
        pieces[MOST_PIECES:] = [f"<i>… {len(pieces) - MOST_PIECES} more pieces …</i>"]
    return "".join(pieces)


def _plain(text: str) -> str:
    left_out = len(text) - HEAD_CHARS - TAIL_CHARS
    if left_out <= 80:
        return escape(_clean(text))
    head, tail = escape(_clean(text[:HEAD_CHARS])), escape(_clean(text[-TAIL_CHARS:]))
    return f"{head}<i>… {left_out:,} more characters …</i>{tail}"


def _clean(text: str) -> str:
    """Remove control characters, which a page must not contain."""
    return CONTROL.sub("�", text.replace("\r\n", "\n"))


def _chip(side: Side) -> str:
    words, tone = summary(side)
    return f'<span class="chip {tone}">{escape(words)}</span>'


def _size(data: str) -> str:
    count = decoded_size(data)
    return f"{count / 1_000_000:.1f} MB" if count >= 1_000_000 else f"{max(1, round(count / 1_000))} KB"


def _score(count: int, total: int, words: str, seen: int) -> str:
    tone = "good" if count == total else "bad"
    said = f"{words}, {seen} seen"
    return f'<div class="score {tone}"><b>{count}<small> of {total}</small></b><span>{said}</span></div>'


def _anchor(case: Case, host: SimulatedHost | None = None) -> str:
    """Return an anchor for a place on the page, whatever characters a tool's name has."""
    tool = NO_WORD.sub(lambda found: f".{ord(found[0]):x}", case.tool)
    return f"{tool}-{host.name}" if host else tool


def _foot(outcome: Outcome) -> str:
    hosts = "; ".join(f"{escape(host.title)} as {_identity(host)}" for host in outcome.hosts)
    return f"<footer><p>{hosts}.</p><p>{len(outcome.cells)} cells in {outcome.seconds:.0f} seconds.</p></footer>"


def _identity(host: SimulatedHost) -> str:
    name = f"{host.client_info['name']} {host.client_info['version']}"
    return f"<code>{escape(name)}</code>, revision {escape(host.revision)}"
