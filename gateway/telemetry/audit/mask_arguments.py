"""Arguments of a call without secrets: for the audit trail also without what is too long for a line."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gateway.config.secrets import HIDDEN, SECRET_NAME, hide
from gateway.core.model.json_values import as_list, is_list, is_object

TOO_DEEP = "…"
"""In place of what nests too deeply."""
_LONGEST = 4_096
"""Maximum characters of a text; a longer one, such as an image, is replaced by its length and its SHA-256."""
_DEEPEST = 64
_MOST_SCHEMAS = 64
_COMBINED = ("anyOf", "oneOf", "allOf")


def masked(arguments: Any, schema: Any, secrets: Sequence[str], *, longest: int | None = _LONGEST) -> Any:
    """Return the arguments with values masked that are secrets.

    A value is one if the schema says so (`format: password`, `writeOnly`), if its name does, or if it is in `secrets`.
    Texts of more than `longest` characters are replaced; None: none are.
    """

    def shown(text: str) -> str:
        return hide(text, secrets) if longest is None or len(text) <= longest else _replaced(text)

    return _masked(arguments, [schema], schema, shown, 0)


def _masked(value: Any, schemas: Sequence[Any], root: Any, shown: Callable[[str], str], depth: int) -> Any:
    if isinstance(value, str):
        return shown(value)
    if depth >= _DEEPEST:
        return TOO_DEEP
    meant = list(_meant(schemas, root))
    if is_object(value):
        masked: dict[str, Any] = {}
        for key, item in value.items():
            inner = [one for schema in meant if (one := _property(schema, key)) is not None]
            is_secret = SECRET_NAME.search(key) or any(map(_is_secret, _meant(inner, root)))
            masked[shown(key)] = HIDDEN if is_secret else _masked(item, inner, root, shown, depth + 1)
        return masked
    if is_list(value):
        inner = [schema.get("items") for schema in meant]
        if any(map(_is_secret, _meant(inner, root))):
            return HIDDEN
        return [_masked(item, inner, root, shown, depth + 1) for item in value]
    return value


def _replaced(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"<{len(text):,} characters, sha256 {digest}>"


def _is_secret(schema: Mapping[str, Any]) -> bool:
    return schema.get("format") == "password" or schema.get("writeOnly") is True


def _property(schema: Mapping[str, Any], key: str) -> Any:
    properties = schema.get("properties")
    return properties.get(key) if is_object(properties) else None


def _meant(schemas: Sequence[Any], root: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas, those that they combine, and those in the same document that they refer to."""
    waiting, seen = list(schemas), 0
    while waiting and seen < _MOST_SCHEMAS:
        schema = waiting.pop(0)
        seen += 1
        if not is_object(schema):
            continue
        yield schema
        waiting += [one for key in _COMBINED for one in as_list(schema.get(key))]
        if isinstance(reference := schema.get("$ref"), str) and reference.startswith("#"):
            waiting.append(_at(root, reference[1:]))


def _at(root: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        root = root.get(part.replace("~1", "/").replace("~0", "~")) if is_object(root) else None
    return root
