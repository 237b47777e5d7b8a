"""Ask a JSON text with a JMESPath expression, in a worker: no expression is bounded by itself.

https://jmespath.org/specification.html
"""

import json
from collections.abc import Mapping
from typing import Any, cast

import jmespath
from jmespath.exceptions import JMESPathError

from gateway.core.model.json_values import is_list, is_object
from gateway.core.tokens import text_tokens
from gateway.errors import MediaError

_TABLE_IS_SMALLER = 0.85
"""The share of JSON's tokens up to which rows are written as a table."""
_MOST_COLUMNS = 100


def query_json(content: bytes, expression: str, max_chars: int) -> str:
    """Return what the expression finds: rows as a table if that is at least 15% smaller, anything else as JSON.

    Raises:
        MediaError: the content is not JSON, the expression is not one, cannot be applied, or finds too much.
    """
    try:
        value = json.loads(content)
    except ValueError as error:
        raise MediaError(f"it is not JSON: {error}", remedy="read it without a query") from None
    except RecursionError:
        raise MediaError("it is nested too deeply for a query", remedy="read it without a query") from None
    try:
        found = jmespath.search(expression, value)
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    except JMESPathError as error:
        raise MediaError(f"the query is not valid: {_first_line(error)}", remedy="write it in JMESPath") from None
    except RecursionError:
        raise MediaError("the query is nested too deeply", remedy="ask for less at a time") from None
    if len(text) > max_chars:
        words = f"the query finds {len(text):,} characters, and at most {max_chars:,} can be read"
        raise MediaError(words, remedy="ask for fewer members, or for a part of the rows such as [0:100]")
    table = as_table(found)
    return table if table is not None and text_tokens(table) <= _TABLE_IS_SMALLER * text_tokens(text) else text


def as_table(found: Any) -> str | None:
    """Return rows as lines with tabs between the cells, the keys first; None if it is not a list of flat objects.

    Cells are JSON, but texts that cannot be mistaken are without quotes, and a missing member is an empty cell.
    """
    if not is_list(found) or len(found) < 2 or not all(is_object(row) and _is_flat(row) for row in found):
        return None
    rows = cast("list[Mapping[str, Any]]", found)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if not columns or len(columns) > _MOST_COLUMNS:
        return None
    lines = ["\t".join(map(_cell, columns))]
    lines += ["\t".join(_cell(row[key]) if key in row else "" for key in columns) for row in rows]
    return "\n".join(lines)


def _is_flat(row: Mapping[str, Any]) -> bool:
    return not any(isinstance(value, (dict, list)) for value in row.values())


def _cell(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str) or not value or value != value.strip() or written != f'"{value}"':
        return written
    try:
        json.loads(value)
    except ValueError:
        return value
    return written  # it would be read as a number, or as null


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:300]
