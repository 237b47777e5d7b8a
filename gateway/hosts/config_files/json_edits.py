"""Adding a member to a JSON text, and removing members: every other character stays."""

import json
import re
from collections.abc import Sequence
from typing import Any

from gateway.config.jsonc import Member, Node, after_trivia, parse

_REST_OF_LINE = re.compile(r"[ \t]*(?:/\*[^\r\n]*?\*/[ \t]*)*(?://[^\r\n]*)?")
_INDENTED = re.compile(r"[\[{,][ \t]*\r?\n([ \t]+)\"")


class NoObject(ValueError):
    """There is something else in place of an object; the argument is its dotted key."""


def with_member(text: str, path: Sequence[str], key: str, value: Any) -> str:
    """Return the text with `key` set to `value` in the object at `path`; missing objects on the path are created.

    Raises:
        Malformed: the text is not JSON.
        NoObject: there is something other than an object on the path.
    """
    root = parse(text, list(path))
    if root is None:
        made = _rendered(_nested(path, {key: value}), "", text)
        return text + ("" if not text or text.endswith(("\n", "\ufeff")) else _newline(text)) + made + _newline(text)
    node, rest = root, [*path, key]
    while True:
        _must_be_object(node, [*path, key][: -len(rest)])
        member = node.member(rest[0])
        if member is None:
            return _inserted(text, node, rest[0], _nested(rest[1:], value))
        if len(rest) == 1 or member.node.value is None:
            value = _nested(rest[1:], value)
            made = _rendered(value, _indent_at(text, member.start), text, compact="\n" not in text.strip())
            return text[: member.node.start] + made + text[member.node.end :]
        node, rest = member.node, rest[1:]


def without_members(text: str, path: Sequence[str], keys: Sequence[str]) -> str:
    """Return the text without these members of the object at `path`; missing ones are ignored.

    Raises:
        Malformed: the text is not JSON.
    """
    for key in keys:
        while (node := _object_at(text, path)) is not None and node.member(key) is not None:
            text = _removed(text, node, key)
    return text


def _object_at(text: str, path: Sequence[str]) -> Node | None:
    node = parse(text, list(path))
    for part in path:
        member = node.member(part) if node is not None else None
        node = member.node if member is not None else None
    return node


def _must_be_object(node: Node, path: Sequence[str]) -> None:
    if node.members is None:
        raise NoObject(".".join(path))


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _inserted(text: str, node: Node, key: str, value: Any) -> str:
    members = node.members or ()
    on_one_line = "\n" not in text.strip() if not members else "\n" not in text[node.start : members[0].start]
    if not members:
        return _into_empty(text, node, key, value, compact=on_one_line)
    last = members[-1]
    comma = after_trivia(text, last.node.end)
    trailing = text[comma : comma + 1] == ","
    after = comma + 1 if trailing else last.node.end
    if on_one_line:
        made = f" {_pair(key, value, '', text, compact=True)}"
        return text[:after] + (f"{made}," if trailing else f",{made}") + text[after:]
    indent = _indent_at(text, last.start)
    found = _REST_OF_LINE.match(text, after)
    assert found is not None  # an empty match is a match
    line_end = after + len(found[0].rstrip())
    made = _newline(text) + indent + _pair(key, value, indent, text) + ("," if trailing else "")
    return text[:after] + ("" if trailing else ",") + text[after:line_end] + made + text[line_end:]


def _into_empty(text: str, node: Node, key: str, value: Any, *, compact: bool) -> str:
    inner = text[node.start + 1 : node.end - 1]
    if compact:
        return text[: node.end - 1].rstrip() + _pair(key, value, "", text, compact=True) + text[node.end - 1 :]
    outer = _indent_at(text, node.start)
    indent = outer + _unit(text)
    made = inner.rstrip() + _newline(text) + indent + _pair(key, value, indent, text) + _newline(text) + outer
    return text[: node.start + 1] + made + text[node.end - 1 :]


def _removed(text: str, node: Node, key: str) -> str:
    """Remove the last member with this key, its comma, and its lines if they hold nothing else."""
    members = node.members or ()
    place = max(index for index, member in enumerate(members) if member.key == key)
    member = members[place]
    comma = after_trivia(text, member.node.end)
    followed = text[comma : comma + 1] == ","
    cuts: list[tuple[int, int]] = []
    if followed and text[member.node.end : comma].strip():
        cuts += [(member.start, member.node.end), (comma, comma + 1)]  # there is a comment between them, which stays
    else:
        cuts.append(_whole_lines(text, member, comma + 1 if followed else member.node.end, followed=followed))
    if not followed and place > 0:
        before = after_trivia(text, members[place - 1].node.end)
        cuts.append((before, before + 1))
    if len(members) == 1 and not (text[node.start + 1 : member.start] + text[comma + followed : node.end - 1]).strip():
        cuts = [(node.start + 1, node.end - 1)]
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    return text


def _whole_lines(text: str, member: Member, end: int, *, followed: bool) -> tuple[int, int]:
    start = member.start
    line_start = text.rfind("\n", 0, start) + 1
    newline = text.find("\n", end)
    if newline >= 0 and not text[line_start:start].strip() and not text[end:newline].strip():
        return line_start, newline + 1
    if followed:
        while text[end : end + 1] in (" ", "\t"):
            end += 1
        return start, end
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    return start, end


def _pair(key: str, value: Any, indent: str, text: str, *, compact: bool = False) -> str:
    return f"{json.dumps(key, ensure_ascii=False)}: {_rendered(value, indent, text, compact=compact)}"


def _rendered(value: Any, indent: str, text: str, *, compact: bool = False) -> str:
    if compact:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, indent=_unit(text)).replace("\n", _newline(text) + indent)


def _unit(text: str) -> str:
    """Return the indentation of one level: that of the file's first indented line with a key, or else two spaces."""
    found = _INDENTED.search(text)
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_at(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]
