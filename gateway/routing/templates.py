"""Which uri templates (RFC 6570) a uri may have come from."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

_EXPRESSION = re.compile(r"\{[^{}]*\}")
_LONGEST = 4_096
"""Characters of a uri or a template that are looked at; longer ones match nothing."""


def matches(template: str, uri: str) -> bool:
    """Whether the uri has all literal parts of the template in order, with anything for its expressions.

    Deliberately generous: who owns a uri is decided by asking. Takes time linear in the uri for any template: shell
    globs are compiled without backtracking, which a regular expression per expression would not be.
    """
    if len(template) > _LONGEST or len(uri) > _LONGEST or not _EXPRESSION.search(template):
        return False
    return fnmatchcase(uri, "*".join(_literal(part) for part in _EXPRESSION.split(template)))


def closest_first(templates: Iterable[tuple[str, str]], uri: str) -> list[str]:
    """The owners of the (owner, template) pairs that match, those with the longest literal part first, each once."""
    found = [(len(_EXPRESSION.sub("", template)), owner) for owner, template in templates if matches(template, uri)]
    return list(dict.fromkeys(owner for _, owner in sorted(found, key=lambda each: -each[0])))


def _literal(part: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", part)
