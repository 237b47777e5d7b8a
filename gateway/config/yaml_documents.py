"""Reading YAML as other programs write it, with the place of every value.

The places are for edits that must not change anything else in a file. Scalars have the types of JSON (YAML 1.2's core
schema): a date and `no` are texts. An alias counts as often as it is used, and merge keys are keys like any.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from gateway.errors import ConfigError, ConfigMalformed

if TYPE_CHECKING:
    import yaml

_MOST_CHARACTERS = 4 * 1024 * 1024
_MOST_VALUES = 100_000
_DEEPEST = 100

_BOOLEAN = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}\Z")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?\Z")


def compose(text: str, where: str, remedy: str | None = None) -> "yaml.Node | None":
    """Parse the one document in a text into nodes with their places; None if it has only blanks and comments.

    Raises:
        ConfigError: it is malformed, with line and column, too long or nested too deeply.
    """
    import yaml  # here, because few files are YAML

    if len(text) > _MOST_CHARACTERS:
        raise ConfigError(f"has more than {_MOST_CHARACTERS:,} characters", where=where)
    try:
        return cast("yaml.Node | None", cast("Any", yaml).compose(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark is not None else where
        raise ConfigMalformed(f"is not YAML: {error.problem or error.context}", where=place, remedy=remedy) from None
    except yaml.YAMLError:
        raise ConfigMalformed("is not YAML: it has a character that YAML does not allow", where=where) from None
    except RecursionError:
        raise ConfigMalformed("is not YAML: it nests too deeply", where=where, remedy=remedy) from None


def from_yaml(text: str, where: str, remedy: str | None = None) -> dict[str, Any]:
    """Parse a YAML mapping; of equal keys, the last counts. An empty text is an empty mapping.

    Raises:
        ConfigError: it is malformed, with line and column, not a mapping, or has too many or too deep values.
    """
    root = compose(text, where, remedy)
    if root is None or is_null(root):
        return {}
    value = _Values(where).value(root, 0)
    if not isinstance(value, dict):
        raise ConfigError("is not a YAML mapping", where=where)
    return cast("dict[str, Any]", value)


def is_null(node: "yaml.Node") -> bool:
    """Whether a node is an empty value."""
    return kind_of(node) == "scalar" and _is_plain(node) and _NULL.match(node.value) is not None


def kind_of(node: "yaml.Node") -> str:
    """Return `scalar`, `sequence` or `mapping`."""
    return str(getattr(node, "id", ""))


def pairs_of(node: "yaml.Node") -> "Sequence[tuple[yaml.Node, yaml.Node]]":
    """Return the keys and values of a mapping."""
    return cast("Sequence[tuple[yaml.Node, yaml.Node]]", node.value)


class _Values:
    """Turns nodes into plain values, up to a number and a depth."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._left = _MOST_VALUES

    def value(self, node: "yaml.Node", depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise ConfigError("has too many values, or nests too deeply", where=self._where)
        if kind_of(node) == "sequence":
            return [self.value(one, depth + 1) for one in cast("Sequence[yaml.Node]", node.value)]
        if kind_of(node) == "mapping":
            return {self._key(key): self.value(one, depth + 1) for key, one in pairs_of(node)}
        return _scalar(node)

    def _key(self, node: "yaml.Node") -> str:
        if kind_of(node) != "scalar":
            raise ConfigError("has a key that is not a text", where=f"{self._where}:{node.start_mark.line + 1}")
        return str(node.value)


def _scalar(node: "yaml.Node") -> Any:
    text = str(node.value)
    if not _is_plain(node) or (node.tag == "tag:yaml.org,2002:str" and not _is_typed(text)):
        return text
    if _NULL.match(text):
        return None
    if _BOOLEAN.match(text):
        return text.casefold() == "true"
    if _INTEGER.match(text):
        return int(text)
    return float(text) if _NUMBER.match(text) else text


def _is_plain(node: "yaml.Node") -> bool:
    return getattr(node, "style", None) is None


def _is_typed(text: str) -> bool:
    return any(pattern.match(text) is not None for pattern in (_NULL, _BOOLEAN, _INTEGER, _NUMBER))
