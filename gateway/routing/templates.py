"""Match URIs against URI templates (RFC 6570)."""

import re
from collections.abc import Iterable

_EXPRESSION = re.compile(r"\{[^{}]*\}")
_LONGEST = 4_096
"""Maximum length of a URI or a template, in characters; longer ones match nothing."""


def matches(template: str, uri: str) -> bool:
    """Whether the URI has all literal parts of the template in order, with anything for its expressions.

    Deliberately generous: the owner of a URI is found by asking. Takes time linear in the URI for any template, and no
    preparation: an upstream may have thousands of templates, all checked for a URI that no upstream lists.
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
    """The owners of the matching (owner, template) pairs without duplicates, longest literal part first."""
    found = [(len(_EXPRESSION.sub("", template)), owner) for owner, template in templates if matches(template, uri)]
    return list(dict.fromkeys(owner for _, owner in sorted(found, key=lambda each: -each[0])))
