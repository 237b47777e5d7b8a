"""OpenAPI documents: parsing them, and following the references within them.

A document is hostile input: nothing outside of it is ever read because of a reference, YAML is read without tags that
construct anything, and size, depth and the values that aliases multiply are bounded.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import unquote

import yaml
from pydantic_core import from_json

from gateway.core.fact_words import plain
from gateway.core.model.json_shape import is_deep
from gateway.core.model.json_text import MOST_VALUES, has_more_values
from gateway.core.model.json_values import as_object, is_dict, is_list, is_object
from gateway.errors import DocumentUnusable, OutsideReference

DEEPEST = 150
"""Maximum levels of arrays and objects in a document."""
_MOST_STEPS = 100
"""Maximum references that lead from one to the next."""

_VERSION = re.compile(r"3\.[01](?:\.[0-9]+)?(?:-.{0,20})?")


class Document:
    """An OpenAPI document of version 3.0 or 3.1."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.version = str(root.get("openapi"))

    @property
    def is_3_0(self) -> bool:
        """Whether its schemas are those of OpenAPI 3.0, and not JSON Schema."""
        return self.version.startswith("3.0")

    def resolve(self, reference: object) -> Any:
        """Return what a reference such as `#/components/schemas/Pet` leads to; None if there is nothing.

        Raises:
            OutsideReference: it leads out of the document.
        """
        if not isinstance(reference, str):
            return None
        if not reference.startswith("#"):
            raise OutsideReference(
                f"it refers to {plain(reference, 100)!r}, outside of the document, which is not read",
                remedy="put everything into one document: npx @redocly/cli bundle FILE -o bundled.json",
            )
        value: Any = self.root
        for step in reference[1:].split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if is_object(value):
                value = value.get(key)
            elif is_list(value) and key.isdecimal() and len(key) < 9 and int(key) < len(value):
                value = value[int(key)]
            else:
                return None
        return None if reference == "#" else value

    def followed(self, value: object) -> Mapping[str, Any]:
        """Return an object, or the one that its `$ref` leads to in the end; an empty one if there is none.

        Raises:
            OutsideReference: a reference leads out of the document.
        """
        found = as_object(value)
        for _ in range(_MOST_STEPS):
            if "$ref" not in found:
                return found
            found = as_object(self.resolve(found["$ref"]))
        return {}


def parse_document(content: bytes) -> Document:
    """Parse a document in JSON or YAML. Takes seconds for a large one.

    Raises:
        DocumentUnusable: it is neither, nests too deeply, or is not OpenAPI 3.0 or 3.1.
    """
    text = content.removeprefix(b"\xef\xbb\xbf")
    is_json = text.lstrip()[:1] == b"{"
    value = _from_json(text) if is_json else _from_yaml(text)
    # Values behind YAML aliases count as often as they occur.
    deep = is_deep(value, DEEPEST, most_values=MOST_VALUES)
    if deep:
        raise _too_deep()
    if deep is None:
        raise _too_many()
    root = value if is_json else _plain(value)
    if not is_dict(root):
        raise DocumentUnusable("the document is not an object")
    _check_version(root)
    if not is_dict(root.get("paths")):
        raise DocumentUnusable("the document has no paths, so there are no operations")
    return Document(root)


def _from_json(text: bytes) -> Any:
    if has_more_values(text):
        raise _too_many()
    try:
        return from_json(text)
    except ValueError as error:
        if "recursion limit" in str(error):
            raise _too_deep() from None
        raise _unreadable("JSON", error) from None


def _from_yaml(text: bytes) -> Any:
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader with fewer types
    except _TooDeep:
        raise _too_deep() from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # The last ones come of tags whose values do not fit them, such as `!!bool abc`.
        raise _unreadable("YAML", error) from None


def _too_deep() -> DocumentUnusable:
    return DocumentUnusable(f"the document nests more than {DEEPEST} levels deep, or contains itself")


def _too_many() -> DocumentUnusable:
    return DocumentUnusable(f"the document has more than {MOST_VALUES:,} values")


def _unreadable(form: str, error: Exception) -> DocumentUnusable:
    return DocumentUnusable(f"the document cannot be read as {form}: {plain(str(error), 200)}")


def _check_version(root: Mapping[str, Any]) -> None:
    if "swagger" in root:
        raise DocumentUnusable(
            f"the document is Swagger {plain(str(root['swagger']), 20)}, and OpenAPI 3.0 or 3.1 is needed",
            remedy="convert it: npx swagger2openapi FILE -o openapi.json",
        )
    version = str(root.get("openapi", ""))
    if not version:
        raise DocumentUnusable("the document is not OpenAPI: it has no member `openapi` with a version")
    if not _VERSION.fullmatch(version):
        raise DocumentUnusable(f"the document is OpenAPI {plain(version, 20)}, and 3.0 or 3.1 is needed")


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _TooDeep(Exception):
    pass


class _Loader(_Base):
    """A safe loader with the types of JSON alone: dates stay texts, and `no` is one too (YAML 1.2, core schema)."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}
    _depth = 0

    def descend_resolver(self, _parent: Any, _index: Any) -> None:
        """Count the levels: the library recurses in C, where too many end the process."""
        self._depth += 1
        if self._depth > DEEPEST + 2:  # a value is one too, and so is the document
            raise _TooDeep

    def ascend_resolver(self) -> None:
        """Leave a level."""
        self._depth -= 1

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        """Read keys as texts, as they are written: numbers can be chosen so that a table of them takes hours to build.

        Nothing is merged: merges of merges multiply before anybody can count them.
        """
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(None, None, "expected a mapping", node.start_mark)
        return {_key(key): self.construct_object(value, deep=deep) for key, value in node.value}

    def construct_yaml_int(self, node: Any) -> int:
        """Read decimal digits alone; Python bounds their number."""
        return int(self.construct_scalar(node))


def _key(node: Any) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise yaml.constructor.ConstructorError(None, None, "found a key that is not a text", node.start_mark)
    return str(node.value)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)

for _tag, _pattern, _first in (
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("null", r"(?:~|null|Null|NULL|)$", ("~", "n", "N", "")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def _plain(value: Any) -> Any:
    """Return a parsed value with texts as its keys, and with texts in place of everything that JSON does not have."""
    if is_dict(value):
        return {str(key): _plain(member) for key, member in value.items()}
    if is_list(value):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
