"""Sentences that the gateway itself shows to a model: lines in place of content, markers, captions and notes.

They are in one place so that they can be read together: short, plain, always in square brackets, so that a model can
tell them from a tool's own text, and never with control characters in a name that an upstream chose.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gateway.core.fact_words import join_facts, kind_words, pixel_words, plain, seconds_words, sentence, size_words
from gateway.core.model.effects import Probed
from gateway.core.model.json_shape import DEEPEST
from gateway.core.model.media_types import PixelSize
from gateway.core.model.texts import visible
from gateway.core.own_names import READ_TOOL, VIEW_TOOL

ERROR_PREFIX = "ERROR: "
"""Prefix for the text of a failed call if a host does not tell its model about failures."""

IMAGES_FOLLOW = "[The images of these results follow.]"
"""The assistant's message between tool messages and their images, for templates that require alternating roles."""

NOTHING = "[The tool returned no content.]"
NO_TEXT_ERROR = "[The tool failed without saying why.]"

_LONGEST_SCHEMA = 2_000
_MOST_PLACES = 10


def label(kind: str, number: int) -> str:
    """Return the name of the number-th image (audio, document ...) of a result, as markers and captions use it."""
    return f"{kind} {number}"


def marker(name: str, known: str = "", handle: str | None = None, url: str | None = None) -> str:
    """Marker in place of a block that was moved behind the text, or in front of a block that has a handle."""
    return f"[{name}{': ' + known if known else ''}{_passed(handle)}{_linked('it', url)}]"


def caption(
    name: str, known: str, changed: str | None, zoom: str | None, handle: str | None = None, url: str | None = None
) -> str:
    """Caption before an image: which one it is, and how it was changed. `zoom`: the handle to see more of it."""
    more = join_facts(known, changed)
    how = f'; for details call {VIEW_TOOL} with handle "{zoom}"' if zoom else _passed(handle)
    return f"[{name}{': ' + more if more else ''}{how}{_linked('the original', url)}]"


_PASSED = "; its handle for tools is "
_CAPTIONED = re.compile(
    rf"\[(image|audio|document|video) \d{{1,6}}(?:: ([^\[\]]{{0,500}}))?{_PASSED}([a-z0-9]{{2,8}}_[a-z0-9]{{6,32}})"
    r"(?:; a link that opens [^\[\]\s]{1,20}(?: [^\[\]\s]{1,20})? for a while: [^\[\]\s]{1,2000})?\]"
)


def _passed(handle: str | None) -> str:
    """Name the handle of media that is shown; worded unlike the handle of hidden media, as nothing has to be opened."""
    return f"{_PASSED}{handle}" if handle else ""


class Captioned(NamedTuple):
    """A marker or caption that names the handle of the media after it: the media's kind, known facts, and handle."""

    kind: str
    known: str
    handle: str


def captioned(text: str) -> Captioned | None:
    """Parse a text that is nothing but a `marker` or `caption` with a handle; None for any other text.

    The number in it counts the media of one result. In a turn of several results, media is numbered across the turn.
    """
    found = _CAPTIONED.fullmatch(text) if len(text) < _LONGEST_CAPTION else None
    return Captioned(found[1], found[2] or "", found[3]) if found else None


_LONGEST_CAPTION = 4_000


def whose(name: str, tool: str, call: str) -> str:
    """Caption before media that follows the tool messages of a turn: which one it is, and whose result it is from."""
    named = f", call {plain(call, 100)}" if call else ""
    return f"[{name}, from the result of {plain(tool, 100)}{named}]"


def scaled(original: PixelSize, shown: PixelSize) -> str:
    """Say how coordinates in a scaled image map back to the original."""
    factor = original.width / shown.width
    return f"shown at {pixel_words(shown)}, multiply coordinates by {factor:.2f} for the original"


def first_frame(frames: int) -> str:
    """Say that only the first frame of an animation is shown."""
    return f"first of {frames:,} frames"


def media_line(
    name: str,
    known: str,
    why: str | None,
    handle: str | None,
    tool: str | None,
    path: str | None = None,
    url: str | None = None,
) -> str:
    """Line in place of content that this host does not show.

    `path` is a copy in a file that the host can open, `url` a link to it.
    """
    written = f"; saved as {plain(path, 4_000)}" if path else ""
    opened = f'; open it with {tool}, handle "{handle}"' if handle and tool else f"; handle {handle}" if handle else ""
    return f"[{name}: {known}{' (' + why + ')' if why else ''}{written}{opened}{_linked('it', url)}]"


def _linked(what: str, url: str | None) -> str:
    return f"; a link that opens {what} for a while: {url}" if url else ""


def description_line(name: str, by: str, known: str, handle: str | None, text: str) -> str:
    """Line in place of media that this host does not show: a description, and what produced it."""
    kept = f"; handle {handle}" if handle else ""
    return f"[{name}, described by {plain(by, 100)} ({known}{kept}): {visible(text.strip())}]"


def probed(known: Probed) -> str:
    """Format the known facts about sound or video: `2 min 5 s, opus, 2 channels, 48 kHz`."""
    channels = {None: None, 1: "mono", 2: "stereo"}.get(known.channels, f"{known.channels} channels")
    return join_facts(
        seconds_words(known.seconds) if known.seconds is not None else None,
        plain(known.codec, 40) if known.codec else None,
        pixel_words(known.pixels) if known.pixels else None,
        channels,
        f"{known.rate / 1_000:g} kHz" if known.rate else None,
    )


def first_seconds(seconds: float, whole: float) -> str:
    """Say how much is left of sound that was cut."""
    return f"the first {seconds_words(seconds)} of {seconds_words(whole)}"


def kept_whole(what: str, handle: str | None) -> str:
    """Say what is shown of content that is stored whole."""
    return f"{what}; whole under handle {handle}" if handle else what


def not_kept(why: str, reason: str) -> str:
    """Say why content is not shown, and why nothing can open it either."""
    return f"{why}; it could not be kept: {reason}" if why else f"it could not be kept: {reason}"


def page_range(shown: int, pages: int) -> str:
    """Say which pages are shown: `all pages`, `pages 1 to 8`."""
    return "all pages" if shown >= pages else f"pages 1 to {shown:,}"


def pages_as_images(shown: int, pages: int) -> str:
    """The last fact in a document's line if its pages follow: `all pages as images`."""
    return f"{page_range(shown, pages)} as images"


PAGES_AS_IMAGES = r"(?:all pages|pages 1 to [\d,]{1,9}) as images"
"""A regular expression that matches the result of `pages_as_images`."""


def page_of(number: int, pages: int, name: str | None) -> str:
    """Say which page of a document an image shows."""
    return f"page {number:,} of {pages:,}{' of ' + name if name else ''}"


def page_mark(number: int, pages: int, has_text: bool = True) -> str:
    """Mark in a document's text at the beginning of a page."""
    return f"[page {number:,} of {pages:,}{'' if has_text else ': no text'}]"


def page_left_out(page: str, why: str) -> str:
    """Line in place of a page that is not shown."""
    return f"[{page}: not shown, {why}]"


def link_line(name: str, known: str, uri: str, description: str | None, readable: bool) -> str:
    """Line in place of a link to a resource."""
    named = f"{plain(name)} " if name and name != uri else ""
    about = f": {plain(description)}" if description else ""
    how = f"; read it with {READ_TOOL}, uri" if readable else ""
    return f"[link {named}<{plain(uri, 2_000)}>{about}{' (' + known + ')' if known else ''}{how}]"


def embedded_text(uri: str, known: str, text: str) -> str:
    """Format an embedded text resource as text, preceded by its address."""
    return f"[resource <{plain(uri, 2_000)}>{' (' + known + ')' if known else ''}]\n{text}"


def page_not_shown(address: str | None) -> str:
    """Say why a page inside a result is a line; `address` is where it can be opened, if anywhere."""
    return f"a page at <{plain(address, 2_000)}>, not shown here" if address else "not shown here"


def embedded_image(name: str, uri: str) -> str:
    """Say where an embedded image came from."""
    return f"[{name}: resource <{plain(uri, 2_000)}>]"


def cut_mark(left_out: int, whole: int, offset: int, handle: str | None, readable: bool, url: str | None = None) -> str:
    """Mark in a text whose middle was left out."""
    more = f'; read on with {READ_TOOL}, handle "{handle}", offset {offset}' if handle and readable else ""
    kept = f"; handle {handle}" if handle and not readable else ""
    return f"\n[… {left_out:,} of {whole:,} characters left out here{more}{kept}{_linked('all of it', url)} …]\n"


def shape_mark(whole: int, handle: str | None, readable: bool, url: str | None = None) -> str:
    """Line above the shape of a JSON text that was too long."""
    more = f'; read any part with {READ_TOOL}, handle "{handle}", query (JMESPath)' if handle and readable else ""
    kept = f"; handle {handle}" if handle and not readable else ""
    return f"[the shape of JSON of {whole:,} characters{more}{kept}{_linked('all of it', url)}:]"


def structured_mark(
    whole: int, places: Sequence[str], handle: str | None, readable: bool, url: str | None = None
) -> str:
    """Words beside structured content that was cut: how much is kept in which places."""
    more = f'; read any part with {READ_TOOL}, handle "{handle}", query (JMESPath)' if handle and readable else ""
    kept = f"; handle {handle}" if handle and not readable else ""
    shown = f"; shown: {', '.join(places)}" if places else ""
    return f"[the shape of structured content of {whole:,} characters{shown}{more}{kept}{_linked('all of it', url)}]"


def rescued(media_type: str, byte_size: int) -> str:
    """Marker in text or JSON in place of encoded bytes that are shown as a block of their own."""
    return f"[{media_type}, {size_words(byte_size)}: see the content of this result]"


def blocks_left_out(count: int, limit: int) -> str:
    """Line at the end of a result that had too many blocks."""
    return f"[{count:,} more {'block' if count == 1 else 'blocks'} left out: a result may have {limit:,}]"


def nested_too_deeply(places: Sequence[str]) -> str:
    """List the parts of a result that were left out because they nest too deeply; without brackets."""
    shown = ", ".join(plain(place, 80) for place in places[:_MOST_PLACES])
    more = f" and {len(places) - _MOST_PLACES:,} more" if len(places) > _MOST_PLACES else ""
    return f"{shown}{more} left out: nested deeper than {DEEPEST} levels"


def failed_text(text: str) -> str:
    """Make sure that the text of a failed call says that it failed."""
    return text if text.lstrip().lower().startswith("error") else ERROR_PREFIX + text


def failure_text(message: str, remedy: str | None) -> str:
    """Format one of the gateway's own errors as the tool result that a model reads."""
    return f"[{message}{'. ' + sentence(remedy) if remedy else ''}]"


# -- content in arguments ----------------------------------------------------------------------------------------------


def unmarked_handle(where: str, handle: str, tool: str) -> str:
    """Line after a tool's error: it was given a handle as text, where its schema does not say that it takes content."""
    return (
        f"[{where} was passed on as the text {handle}: the schema of {tool} does not mark {where} as content, so the "
        "content was not put there]"
    )


def unknown_argument(name: str, tool: str, question: str) -> str:
    """Line after a tool's error: it was given an argument that its schema does not have, and similar ones."""
    return f"[{name!r} is not an argument of {tool} by its schema: {question}]"


def takes_content(kind: str | None, accepts: Sequence[str], *, urls: bool) -> str:
    """Sentence in the description of an argument that takes content. `accepts` lists media types; empty: any."""
    what = kind_words(kind) + (f" ({', '.join(plain(one, 60) for one in accepts[:10])})" if accepts else "")
    others = "its URL, or a data: URI" if urls else "or a data: URI"
    return f"[Takes {what}: its handle, as a line of an earlier result names it, {others}]"


_LISTED = 50
"""Maximum number of pieces of content that a directory lists; further ones are only counted."""


def content_line(handle: str, media_type: str, byte_size: int, name: str | None) -> str:
    """Line for one piece of content in a directory."""
    return f"{handle}: {join_facts(plain(media_type, 80), size_words(byte_size), plain(name, 100) if name else None)}"


def content_directory(lines: Sequence[str]) -> str:
    """List the content that exists, and say how to use it."""
    if not lines:
        return "[There is no content yet that could be passed to a tool by its handle.]"
    heading = "Content that you can pass to tools, wherever an argument takes it: give its handle."
    more = [f"... and {len(lines) - _LISTED:,} more"] if len(lines) > _LISTED else []
    return "\n".join([f"[{heading}]", *(f"- {line}" for line in [*lines[:_LISTED], *more])])


# -- read by a model in an agent loop ----------------------------------------------------------------------------------

CALLS_REFUSED = (
    "Tool call refused: the limit of turns with tool calls is reached. "
    "Give your final answer now, without calling further tools."
)
"""The result of every call after the limit of turns of a toolset is reached."""


def malformed_arguments(written: str) -> str:
    """The result of a call whose arguments are not a JSON object."""
    return failure_text(f"The arguments are not a JSON object, so nothing was called: {plain(written, 200)}", None)


def as_json_text(schema: str) -> str:
    """Describe an argument of any shape for an API that requires every shape to be known."""
    known = "" if schema == "{}" else f" of a value of this schema: {plain(schema, _LONGEST_SCHEMA)}"
    return f"[JSON text{known}]"


def with_limits(description: str, limits: Mapping[str, str]) -> str:
    """Append limits that an API's schemas cannot express to the description of an argument."""
    told = "; ".join(f"{name}: {plain(limit)}" for name, limit in limits.items())
    return " ".join(part for part in (description, f"[{told}]" if told else "") if part)


def unfit_arguments(tool: str, mistakes: Sequence[str]) -> str:
    """The result of a call that was not made because its arguments do not match the tool's own schema."""
    named = plain(tool, 100)
    return failure_text(f"The arguments do not fit {named}, so nothing was called. {'; '.join(mistakes)}", None)


def shown_with_result(handle: str) -> str:
    """Marker in JSON in place of a line naming content that now follows the result."""
    return f"[{handle}: shown with this result]"


def older_media(kind: str, known: str, handle: str | None) -> str:
    """Line in place of an older result's media, left out of a request. It has no number and is not expanded again."""
    return media_line(kind, known, "of an older result, left out here", handle, None)


def same_media(kind: str, known: str, tool: str, call: str) -> str:
    """Line in place of media that an earlier result, or a text outside of results, already shows."""
    if not call:
        return f"[{kind}: {known}, the same as shown before]"
    return f"[{kind}: {known}, the same as in the result of {plain(tool, 100)}, call {plain(call, 100)}]"


def media_by_reference(kind: str, number: int) -> str:
    """Name for media that a client gave by address and that is sent after the results."""
    return f"{kind} by address {number}"


def login_message(upstream: str) -> str:
    """What a person is asked before a link is opened to log in."""
    return f"{plain(upstream, 100)} wants you to log in. The link opens its login in your browser."


def log_in_at(url: str) -> str:
    """What to do about a login if the host cannot open the link itself."""
    return f"ask the user to open {url} in a browser and to log in there, then repeat this call"


def logged_in(upstream: str) -> str:
    """The answer of `gateway_login`."""
    return f"The user is logged in to {plain(upstream, 100)}. Its tools are listed now."
