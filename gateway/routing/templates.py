"""Which uri templates (RFC 6570) a uri may have come from."""

import re
from collections.abc import Iterable

_EXPRESSION = re.compile(r"\{[^{}]*\}")
_LONGEST = 4_096
"""Characters of a uri or a template that are looked at; longer ones match nothing."""


def matches(template: str, uri: str) -> bool:
    """Whether the uri has all literal parts of the template in order, with anything for its expressions.

    Deliberately generous: who owns a uri is decided by asking. Takes time linear in the uri for any template, and none
    to prepare: an upstream may have thousands of templates, and each is looked at for a uri that nobody lists.
    """
    if len(template) > _LONGEST or len(uri) > _LONGEST:
        return False
    first, *others = _EXPRESSION.split(template)
    if not others or not uri.startswith(first):
        return False
    *between, last = others
    place, end = len(first), len(uri) - len(last)
    if end < place or not uri.endswith(last):
        return False
    for part in between:
        found = uri.find(part, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return True


def closest_first(templates: Iterable[tuple[str, str]], uri: str) -> list[str]:
    """The owners of the (owner, template) pairs that match, those with the longest literal part first, each once."""
    found = [(len(_EXPRESSION.sub("", template)), owner) for owner, template in templates if matches(template, uri)]
    return list(dict.fromkeys(owner for _, owner in sorted(found, key=lambda each: -each[0])))
