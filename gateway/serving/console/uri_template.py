"""URI templates of resources: their variables, and the address for values of them. Pure.

RFC 6570, levels 1 to 3: values are texts, and modifiers (`{list*}`, `{name:3}`) are read and left aside.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]{1,500})\}")
_RESERVED = ":/?#[]@!$&'()*+,;="


class _Operator(NamedTuple):
    """How an expression begins, what stands between its variables, whether they are named, and what stays."""

    first: str
    between: str
    is_named: bool
    allowed: str


_OPERATORS: Mapping[str, _Operator] = {  # section 3.2.2 to 3.2.9, as the table of appendix A
    "": _Operator("", ",", False, ""),
    "+": _Operator("", ",", False, _RESERVED),
    "#": _Operator("#", ",", False, _RESERVED),
    ".": _Operator(".", ".", False, ""),
    "/": _Operator("/", "/", False, ""),
    ";": _Operator(";", ";", True, ""),
    "?": _Operator("?", "&", True, ""),
    "&": _Operator("&", "&", True, ""),
}


def variables(template: str) -> list[str]:
    """Return the names of the variables of a template, in order, each once."""
    return list(dict.fromkeys(name for found in _EXPRESSION.finditer(template) for name in _names(found[2])))


def expanded(template: str, values: Mapping[str, str]) -> str:
    """Return the address for these values; variables without one are left out."""
    return _EXPRESSION.sub(lambda found: _expression(_OPERATORS[found[1]], _names(found[2]), values), template)


def _names(listed: str) -> list[str]:
    return [name.partition(":")[0].removesuffix("*").strip() for name in listed.split(",")]


def _expression(operator: _Operator, names: list[str], values: Mapping[str, str]) -> str:
    given = [(name, quote(values[name], safe=operator.allowed, errors="replace")) for name in names if name in values]
    if not given:
        return ""
    if not operator.is_named:
        return operator.first + operator.between.join(value for _, value in given)
    joins = "" if operator.between == ";" else "="
    return operator.first + operator.between.join(f"{n}={v}" if v else f"{n}{joins}" for n, v in given)
