"""Print results for people: text unchanged, media as a line with type and size."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from gateway.cli.save_media import found_of
from gateway.core.fact_words import counted, join_facts, pixel_words, plain, size_words
from gateway.core.model.blocks import Block, LinkBlock, ResourceBlock, TextBlock, UnknownBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_values import is_dict, is_list

_SHOWN_CHARS = 2_000
_SHOWN_BASE64 = 300
"""Number of characters without a blank above which a text is taken for encoded bytes."""

_LONGEST_KEY = 80
_COLUMNS = 80

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Name every profile above what is equal for them.")]

Shown = TypeVar("Shown")


def result_lines(envelope: Envelope, saved: Mapping[int, Path]) -> Iterator[str]:
    """The lines of a result, block by block, as the host would be sent it."""
    if envelope.is_error:
        yield "(the result is marked as an error)"
    for index, block in enumerate(envelope.blocks):
        yield block.text if isinstance(block, TextBlock) else _line(block, saved.get(index))
    if envelope.has_structured_content:
        yield "structured content:"
        yield json.dumps(_readable(envelope.structured_content), indent=2, ensure_ascii=False)
    if not envelope.blocks and not envelope.has_structured_content:
        yield "(nothing)"
    if envelope.meta:
        yield meta_words(envelope.meta)


def meta_words(meta: Mapping[str, Any]) -> str:
    """That there is a `_meta`, with the names of its keys: it may hold anything, and is for no model."""
    return f"(_meta: {', '.join(plain(key, _LONGEST_KEY) for key in meta)}; --json shows it)"


def _readable(value: Any) -> Any:
    """Shorten a JSON value for people: of base64, and other long text without blanks, only the beginning is kept."""
    if is_dict(value):
        return {key: _readable(member) for key, member in value.items()}
    if is_list(value):
        return [_readable(item) for item in value]
    if isinstance(value, str) and len(value) > _SHOWN_BASE64 and not any(map(str.isspace, value[:_SHOWN_BASE64])):
        return f"{value[:40]}… ({len(value) - 40:,} characters more)"
    return value


def grouped(by_profile: Mapping[str, Shown]) -> Iterator[tuple[list[str], Shown]]:
    """Group profiles with equal values together, in the order of the first profile of each group."""
    groups: list[tuple[list[str], Shown]] = []
    for name, found in by_profile.items():
        names = next((names for names, other in groups if other == found), None)
        if names is None:
            groups.append(([name], found))
        else:
            names.append(name)
    yield from groups


def heading(names: Sequence[str], *, verbose: bool) -> str:
    """Return the line above what is equal for these profiles: in 80 columns, or with `verbose` all their names."""
    return f"== {profile_names(names, verbose=verbose, room=_COLUMNS - 3)}"


def _best_known_first(names: Sequence[str]) -> list[str]:
    """Return the profiles in the order in which people look for theirs: hosts that can be installed, then the rest."""
    from gateway.hosts.config_files.hosts import HOSTS

    known = dict.fromkeys(host.profile or host.name for host in HOSTS.values())
    places = {name: place for place, name in enumerate(known)}
    return sorted(names, key=lambda name: places.get(name, len(places)))


def profile_names(names: Sequence[str], *, verbose: bool = False, room: int = 60) -> str:
    """Return the names of profiles, joined; if they exceed `room` characters, their number and the best known of them.

    `verbose`: all of them however long that is.
    """
    every = ", ".join(names)
    if verbose or len(every) <= room:
        return every
    shown = _best_known_first(names)
    while len(shown) > 1 and len(_shortened(shown, len(names))) > room:
        del shown[-1]
    return _shortened(shown, len(names))


def _shortened(shown: Sequence[str], total: int) -> str:
    return f"{counted(total, 'profile')}: {', '.join(shown)} and {total - len(shown)} more (-v: all)"


def block_lines(envelope: Envelope) -> Iterator[str]:
    """One line for each block of the envelope, to show its structure."""
    for index, block in enumerate(envelope.blocks):
        if isinstance(block, TextBlock):
            yield f"{index}  text, {counted(len(block.text), 'character')}: {plain(block.text, 80)}"
        else:
            yield f"{index}  {_embedded_text(block) or _line(block, None)[1:-1]}"
    if envelope.has_structured_content:
        yield f"-  structured content: {plain(json.dumps(envelope.structured_content, ensure_ascii=False), 80)}"
    if envelope.meta:
        yield f"-  {meta_words(envelope.meta)[1:-1]}"
    if envelope.is_error:
        yield "-  marked as an error"


def _embedded_text(block: Block) -> str | None:
    """Describe an embedded resource with text in one line, without the text; None for any other block."""
    if not isinstance(block, ResourceBlock) or (text := block.resource.text) is None:
        return None
    known = plain(block.resource.mime_type or "no type", 80)
    return f"resource: {join_facts(known, counted(len(text), 'character'), plain(block.resource.uri))}"


def _line(block: Block, path: Path | None) -> str:
    """Describe a block in angle brackets: square ones are those of texts for the model, such as `[image 1: 20x20]`."""
    saved = f" saved as {path}" if path is not None else ""
    if isinstance(block, UnknownBlock):
        return f"<a block of an unknown kind: {plain(json.dumps(block.value, ensure_ascii=False), 200)}>"
    if isinstance(block, LinkBlock):
        about = join_facts(plain(block.uri), plain(block.name or ""), block.mime_type and plain(block.mime_type))
        return f"<link: {about}>"
    if isinstance(block, ResourceBlock) and block.resource.text is not None:
        return f"<resource {plain(block.resource.uri)}>\n{_cut(block.resource.text)}"
    kind = f"resource {plain(block.resource.uri)}" if isinstance(block, ResourceBlock) else block.type
    found = found_of(block)
    if found is None:
        return f"<{kind}: its data is not base64>"
    size = pixel_words(found.pixels) if found.pixels else None
    return f"<{kind}: {join_facts(found.media_type, size, size_words(found.byte_size))}>{saved}"


def _cut(text: str) -> str:
    more = len(text) - _SHOWN_CHARS
    return text if more <= 0 else f"{text[:_SHOWN_CHARS]}… ({more:,} characters more)"
