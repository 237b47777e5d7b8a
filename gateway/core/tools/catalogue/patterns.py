"""Estimating the size of patterns (regular expressions) in schemas when compiled."""

import re

_COUNTED = re.compile(r"\{(\d{1,9})(,(\d{0,9}))?\}")
_ASCII_CLASS = re.compile(r"(?!\^)(?:\\[^pPDSWsux]|[^\\\x80-\U0010ffff])*\]?")
_PROPERTY = re.compile(r"\\[pP](\{[^}]{0,99}\}|.)", re.DOTALL)
_LONGEST = 10_000
_CLASS = 20
"""States of a class that accepts characters beyond ASCII: those are matched byte by byte in UTF-8."""
_COMPILED_PROPERTY = 400
"""What it costs to compile a property of Unicode once, in states: hundreds of ranges (measured for \\p{L}: 0.4 ms)."""


def states(pattern: str) -> int:
    """Estimate the maximum number of states of an automaton for a pattern. Linear in the length of the pattern."""
    return _states(pattern, _CLASS)


def compiled_states(pattern: str) -> int:
    """Estimate how much work it is to compile a pattern, in states of about a microsecond each."""
    return _states(pattern, _COMPILED_PROPERTY)


def _states(pattern: str, of_property: int) -> int:
    if len(pattern) > _LONGEST:
        return len(pattern) * of_property
    groups = [0]
    last = place = 0
    """`last`: the states that a repetition would repeat."""
    while place < len(pattern):
        sign = pattern[place]
        place += 1
        if sign == "(":
            groups.append(1)
            last = 0
            continue
        if sign == ")":
            last = groups.pop() if len(groups) > 1 else 0
        elif sign == "{" and (counted := _COUNTED.match(pattern, place - 1)):
            times = max(int(counted[1]), int(counted[3] or 0), 1)
            groups[-1] += last * (times - 1)
            last *= times
            place = counted.end()
            continue
        elif sign == "[":
            end = _class_end(pattern, place)
            if _PROPERTY.search(pattern, place, end):
                last = of_property
            else:
                last = 1 if _ASCII_CLASS.fullmatch(pattern, place, end) else _CLASS
            place = end
        elif sign == "\\" and (named := _PROPERTY.match(pattern, place - 1)):
            last = of_property
            place = named.end()
        elif sign == "\\":
            last = _CLASS if pattern[place : place + 1] in ("D", "S", "W", "s") else 1
            place += 1
        else:
            last = _CLASS if sign == "." else 1
        groups[-1] += last
    return sum(groups) + 1


def _class_end(pattern: str, place: int) -> int:
    """Return the end of a class of characters that begins before `place`."""
    while place < len(pattern) and pattern[place] != "]":
        place += 2 if pattern[place] == "\\" else 1
    return place + 1
