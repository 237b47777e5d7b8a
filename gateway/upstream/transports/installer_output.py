"""Read what installers print: notices, which say nothing about a failure, and packages that do not exist. Pure."""

import re
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

_NOTICE = re.compile(
    r"""^\s*(?:
        npm\ (?:notice|warn)\b                          # updates, deprecated packages
      | \ ?(?:WARN|Progress:)\s                         # pnpm
      | (?:➤\s)?YN0000:                                 # Yarn, which ends with its totals
      | \[notice\]                                      # pip: a newer version of it
      | hint:\s                                         # uv
      | warning:\ .{0,60}(?:uv|hardlink|VIRTUAL_ENV|deprecat)  # uv
      | (?:Installed|Resolved|Prepared|Audited|Uninstalled)\ \d+\ packages?\ in\b   # uv
      | (?:Download(?:ing|ed)|Building|Built|Updat(?:ing|ed))\ [\w.@/+:=-]+(?:\ \([^)]*\))?\s*$   # uv
      | Download\ https?://                             # deno
      | Warning\ .{0,40}(?:npm\ package|Deno|[Ii]mplicitly|[Ii]gnored\ build\ scripts)   # deno
      | (?:A\ new\ release\ of\ Deno|Run\ `?deno\ upgrade)
      | (?:Resolving\ dependencies|Resolved,\ downloaded\ and\ extracted|Saved\ lockfile)   # bun
      | See\ '(?:docker|podman|nerdctl)\ .{0,40}--help | Run\ '(?:docker|podman|nerdctl)\ .{0,40}--help'
      | go:\ downloading\s
    )""",
    re.VERBOSE | re.IGNORECASE,
)

# Servers write what they like: nothing here may start at each character and look to the end of the line.
_ABSENT = re.compile(
    r"""npm\ (?:error|ERR!)\ 404\ +'?(?P<npm>@?[^@'\s]+)(?:@[^'\s]*)?'?\ is\ not\ in\ this\ registry
      | npm\ (?:error|ERR!)\ 404\ +The\ requested\ resource\ '(?P<npm_resource>@?[^@'\s]+)
      | npm\ (?:error|ERR!)\ (?:notarget\ No\ matching\ version\ found\ for\ (?P<npm_version>\S+?)\.?$
                               | 404\ Not\ Found\ - | code\ E404)
      | ERR_PNPM_(?:FETCH_404|NO_MATCHING_VERSION|PACKAGE_NOT_FOUND)
      | Couldn't\ find\ (?:package|any\ versions\ for)\ "(?P<yarn>[^"]+)"
      | YN0035:.{0,300}Package\ not\ found | YN0082:
      | error:\ GET\ https?://\S+\ -\ 404
      | error:\ No\ version\ matching\ .{0,300}\ found\ for\ specifier
      | npm\ package\ '(?P<deno>[^']+)'\ does\ not\ exist
      | JSR\ package\ not\ found:\ (?P<jsr>\S+)
      | Because\ (?P<uv>\S+)\ was\ not\ found\ in\ the\ (?:package\ registry|provided\ package\ locations)
      | Because\ there\ (?:is|are)\ no\ versions?\ of\ (?P<uv_version>\S+)
      | No\ matching\ distribution\ found\ for\ (?P<pip>\S+)
      | pull\ access\ denied\ for\ (?P<docker>[^\s,]+)
      | manifest\ for\ (?P<docker_tag>\S+)\ not\ found
      | manifest\ unknown | name\ unknown:\ repository
      | repository\ name\ not\ known\ to\ registry
      | reading\ manifest\ \S+\ in\ (?P<podman>\S+):\ .{0,300}(?:denied|unauthorized|not\ found|unknown)
      | module\ (?P<go>\S+):\ .{0,300}(?:404\ Not\ Found|not\ found)
      | (?<!\S)(?P<nuget>\S++)\ is\ not\ found\ in\ NuGet\ feeds
    """,
    re.VERBOSE,
)


def is_notice(line: str) -> bool:
    """Whether a line is a notice of an installer: progress, a newer version of it, a warning, a hint."""
    return _NOTICE.match(line) is not None


class AbsentPackage(NamedTuple):
    """A package, version or image that an installer did not find: the line that says so, and the name if it has one."""

    line: str
    name: str | None


def absent_package(lines: Sequence[str]) -> AbsentPackage | None:
    """Return the package that an installer did not find by its last lines; None if that is not what they say.

    The line with the name counts, wherever it is: an installer goes on with advice.
    """
    found = [(line, match) for line in lines if (match := _ABSENT.search(line))]
    if not found:
        return None
    line, match = next((each for each in found if each[1].lastgroup is not None), found[0])
    return AbsentPackage(line, match[match.lastgroup] if match.lastgroup is not None else None)


class LastLines:
    """The last lines of a program's stderr. Notices of installers take no room from others, and count if alone."""

    def __init__(self, most: int) -> None:
        self._said: deque[str] = deque(maxlen=most)
        self._notices: deque[str] = deque(maxlen=most)

    def add(self, line: str) -> None:
        """Keep a line, and forget the oldest of its kind if there are too many."""
        (self._notices if is_notice(line) else self._said).append(line)

    @property
    def lines(self) -> Sequence[str]:
        """The lines that may say why the program ended."""
        return [*self._said] if any(line.strip() for line in self._said) else [*self._notices]
