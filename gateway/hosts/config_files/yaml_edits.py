"""Adding a member to a YAML text, and removing members: every other character stays.

The parser's marks say where a value stands; what is written is JSON, which is YAML. Aliases, tags and other rarities
may lead an edit astray, so the caller parses the result again and compares.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gateway.config.yaml_documents import compose, is_null, kind_of, pairs_of

if TYPE_CHECKING:
    import yaml

_BARE = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)\Z)[A-Za-z_][A-Za-z0-9_-]*", re.IGNORECASE)
"""A key that is a text in every version of YAML without quotes."""


class NotEditable(ValueError):
    """The text is written in a way that is not edited."""


def with_member(text: str, where: str, path: Sequence[str], key: str, value: Mapping[str, Any]) -> str:
    """Return the text with `key` set to `value` in the mapping at `path`; missing mappings on the path are created.

    Raises:
        ConfigError: the text is not YAML.
        NotEditable: there is something other than a mapping on the path, or it is written in a way that is not edited.
    """
    root = compose(text, where)
    if root is None or is_null(root):
        if root is not None:
            raise NotEditable
        return _on_new_line(text, len(text), _lines([*path, key], value, 0, _newline(text)))
    node, rest = root, [*path, key]
    while True:
        pair = _pair(node, rest[0])
        if pair is None:
            return _inserted(text, node, rest, value)
        if len(rest) == 1:
            return _replaced(text, node, pair, value)
        if is_null(pair[1]) or _is_empty(pair[1]):
            return _filled(text, node, pair, rest, value)
        node, rest = pair[1], rest[1:]


def with_setting(text: str, where: str, key: str, value: str | int | float | bool) -> str:
    """Return the text with a scalar as its last member; the text has none of this name.

    Raises:
        ConfigError: the text is not YAML.
        NotEditable: it is not a mapping, or is written in a way that is not edited.
    """
    root = compose(text, where)
    if root is None:
        return _on_new_line(text, len(text), _lines([], {key: value}, 0, _newline(text)))
    is_there = _pair(root, key) is not None
    pairs = pairs_of(root)
    if is_there or not pairs:
        raise NotEditable
    if _is_flow(root):
        end = _content_end(pairs[-1][1])
        return f"{text[:end]}, {_json(key)}: {_json(value)}{text[end:]}"
    lines = _lines([], {key: value}, pairs[0][0].start_mark.column, _newline(text))
    return _on_new_line(text, _content_end(pairs[-1][1]), lines)


def without_members(text: str, where: str, path: Sequence[str], keys: Sequence[str]) -> str:
    """Return the text without these members of the mapping at `path`; missing ones are ignored.

    Raises:
        ConfigError: the text is not YAML.
        NotEditable: it is written in a way that is not edited.
    """
    for key in keys:
        parent, node = None, compose(text, where)
        for part in path:
            if node is None or is_null(node) or (parent := _pair(node, part)) is None:
                return text
            node = parent[1]
        if node is None or is_null(node) or (pair := _pair(node, key)) is None:
            continue
        text = _removed(text, node, pair, parent)
    return text


_Pair = tuple["yaml.Node", "yaml.Node"]


def _pair(node: "yaml.Node", key: str) -> _Pair | None:
    if kind_of(node) != "mapping":
        raise NotEditable
    found = [pair for pair in pairs_of(node) if kind_of(pair[0]) == "scalar" and pair[0].value == key]
    if len(found) > 1:
        raise NotEditable
    return found[0] if found else None


def _is_flow(node: "yaml.Node") -> bool:
    return bool(getattr(node, "flow_style", False))


def _is_empty(node: "yaml.Node") -> bool:
    return kind_of(node) == "mapping" and not node.value


def _inserted(text: str, node: "yaml.Node", keys: Sequence[str], value: Mapping[str, Any]) -> str:
    """Add a member after the last one."""
    pairs = pairs_of(node)
    if not pairs:  # `{}`, the whole document
        return text[: node.start_mark.index] + "{" + _flow(keys, value) + "}" + text[node.end_mark.index :]
    if _is_flow(node):
        end = _content_end(pairs[-1][1])
        return f"{text[:end]}, {_flow(keys, value)}{text[end:]}"
    lines = _lines(keys, value, pairs[0][0].start_mark.column, _newline(text))
    return _on_new_line(text, _content_end(pairs[-1][1]), lines)


def _replaced(text: str, node: "yaml.Node", pair: _Pair, value: Mapping[str, Any]) -> str:
    start, end = pair[0].start_mark.index, _content_end(pair[1])
    if _is_flow(node):
        return text[:start] + _flow([pair[0].value], value) + text[end:]
    lines = _lines([pair[0].value], value, pair[0].start_mark.column, _newline(text)).rstrip("\r\n")
    if text[start:end].endswith("\n"):
        lines += _newline(text)
    return text[:start] + lines.lstrip(" ") + text[end:]


def _filled(text: str, node: "yaml.Node", pair: _Pair, rest: Sequence[str], value: Mapping[str, Any]) -> str:
    """Put the first member into an empty mapping, or in place of an empty value: the `{}` and `null` go."""
    key, empty = pair
    if _is_flow(node):
        start, end = empty.start_mark.index, empty.end_mark.index
        return text[:start] + (" " if start == end else "") + "{" + _flow(rest[1:], value) + "}" + text[end:]
    if _is_empty(empty) and "#" in text[empty.start_mark.index : empty.end_mark.index]:
        raise NotEditable
    before = text[: empty.start_mark.index].rstrip(" ") if empty.start_mark.index < empty.end_mark.index else None
    rest_of_text = text[empty.end_mark.index :]
    text = text if before is None else before + rest_of_text
    at = empty.end_mark.index if before is None else len(before)
    column = key.start_mark.column + _indentation(text)
    return _on_new_line(text, at, _lines(rest[1:], value, column, _newline(text)))


def _removed(text: str, node: "yaml.Node", pair: _Pair, parent: _Pair | None) -> str:
    pairs = list(pairs_of(node))
    if _is_flow(node):
        return _out_of_flow(text, pairs, pairs.index(pair))
    start = _line_start(text, pair[0].start_mark.index)
    if text[start : pair[0].start_mark.index].strip():
        raise NotEditable  # `- key: value`, or the key after a tag or an anchor
    end = _line_end(text, _content_end(pair[1]))
    if len(pairs) == 1 and parent is not None:
        colon = text.index(":", parent[0].end_mark.index) + 1
        return f"{text[:colon]} {{}}{text[colon:start]}{text[end:]}"
    return text[:start] + text[end:]


def _out_of_flow(text: str, pairs: Sequence[_Pair], place: int) -> str:
    start, end = pairs[place][0].start_mark.index, _content_end(pairs[place][1])
    if place + 1 < len(pairs):
        gap, end = (end, pairs[place + 1][0].start_mark.index), pairs[place + 1][0].start_mark.index
    elif place > 0:
        gap, start = (_content_end(pairs[place - 1][1]), start), _content_end(pairs[place - 1][1])
    else:
        gap = (start, start)
    if "#" in text[slice(*gap)]:
        raise NotEditable  # a comment between them
    return text[:start] + text[end:]


def _content_end(node: "yaml.Node") -> int:
    """Return the end of a value; the parser's own mark of a block is behind the comments that follow it."""
    if kind_of(node) == "scalar" or _is_flow(node) or not node.value:
        return node.end_mark.index
    last: Any = node.value[-1]
    return _content_end(last[1] if kind_of(node) == "mapping" else last)


def _on_new_line(text: str, position: int, lines: str) -> str:
    """Insert whole lines after the line of `position`."""
    end = _line_end(text, position)
    if end > 0 and not text[:end].endswith("\n") and text[:end] != "\ufeff":
        lines = _newline(text) + lines
    return text[:end] + lines + text[end:]


def _line_start(text: str, position: int) -> int:
    start = text.rfind("\n", 0, position) + 1
    return start + 1 if text.startswith("\ufeff", start) else start


def _line_end(text: str, position: int) -> int:
    """Return the start of the next line, or `position` if it is the start of one."""
    if position > 0 and text[position - 1] == "\n":
        return position
    found = text.find("\n", position)
    return len(text) if found < 0 else found + 1


def _indentation(text: str) -> int:
    """Return the indentation of one level: that of the first line within a mapping, or else two."""
    found = re.search(r"^[^\s#-][^\n]*:[ \t]*\r?\n( +)[^\s#-]", text, re.MULTILINE)
    return len(found[1]) if found else 2


def _lines(keys: Sequence[str], value: Mapping[str, Any], column: int, newline: str) -> str:
    """Write a member as lines: its own members one a line, each as JSON."""
    lines: list[str] = []
    for key in keys:
        lines.append(f"{' ' * column}{_key(key)}:")
        column += 2
    lines += (f"{' ' * column}{_key(key)}: {_json(one)}" for key, one in value.items())
    if not value and lines:
        lines[-1] += " {}"
    return "".join(line + newline for line in lines)


def _flow(keys: Sequence[str], value: Mapping[str, Any]) -> str:
    inner = _json(value)
    for key in reversed(keys[1:]):
        inner = f"{{{_json(key)}: {inner}}}"
    return f"{_json(keys[0])}: {inner}"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _json(key)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise NotEditable from None


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
