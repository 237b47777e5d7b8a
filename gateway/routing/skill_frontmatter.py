"""The frontmatter of a `SKILL.md` beside that in its entry: a host must not load a skill if they differ (SEP-2640)."""

import re

from gateway.config.yaml_documents import from_yaml
from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_object, is_list, is_object
from gateway.core.model.wire import WireObject
from gateway.errors import ConfigError

_FRONTMATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_LONGEST = 64 * 1024
"""Characters of frontmatter that are compared: reading YAML takes long."""


def frontmatter_fault(entry: WireObject, content: bytes) -> str | None:
    """Return how the frontmatter of a skill's `SKILL.md` differs from that in its entry, or None if it does not.

    Takes up to a second for a hostile one: call it in a thread.
    """
    try:
        found = _FRONTMATTER.match(content.decode("utf-8"))
    except UnicodeDecodeError:
        return "it is not UTF-8"
    if found is None:
        return "it has no frontmatter"
    if len(found[1]) > _LONGEST:
        return f"its frontmatter is longer than {_LONGEST:,} characters"
    try:
        written = from_yaml(found[1], "the frontmatter")
    except ConfigError as error:
        return plain(str(error), 300)
    described = as_object(entry.get("frontmatter"))
    for key in (*described, *written):
        if key not in written or key not in described or not _is_same(described[key], written[key]):
            return f"{plain(key, 60)} in its frontmatter is not what the entry says"
    return None


def _is_same(one: object, other: object) -> bool:
    """Whether two JSON values are the same; `True` is not 1, and `1` is `1.0`."""
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if is_object(one) and is_object(other):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    return isinstance(one, bool) is isinstance(other, bool) and one == other
