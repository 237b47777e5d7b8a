"""Judge lists of tools: as an upstream declares them, and as each host would be offered them. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gateway.cli.diagnosis.findings import CheckResult, list_names
from gateway.core.fact_words import counted, plain
from gateway.core.model.grant import SEPARATOR
from gateway.core.profiles.profile import Profile
from gateway.core.tools.catalogue import Catalogue
from gateway.core.tools.catalogue.faults import Fault, faults
from gateway.core.tools.catalogue.names import NameRules
from gateway.core.tools.catalogue.repair import is_object_schema, repaired, unusable, withheld

_NAME = 80
_AUTHOR = "the server's author has to fix it"


@dataclass(frozen=True)
class HostOffer:
    """The tools that hosts of one profile would be offered by a gateway that they know as `registered_as`."""

    profile: Profile
    catalogue: Catalogue
    registered_as: str

    @property
    def rules(self) -> NameRules:
        """This host's rules for tool names."""
        return NameRules.of(self.profile.tools, self.registered_as)


def check_declared(upstream: str, tools: Sequence[Any]) -> Iterator[CheckResult]:
    """Report problems with the tools of an upstream that do not depend on the host."""
    about = f"upstream {upstream}"
    out = [f"{name} ({why})" for name, why in withheld(tools)]
    if out:
        text = f"{counted(len(out), 'tool')} withheld, because hosts would refuse them: {list_names(out)}"
        yield CheckResult(about, "problem", text, f'{_AUTHOR}: a name, and a valid inputSchema with "type": "object"')
    good = [cast("Mapping[str, Any]", tool) for tool in tools if unusable(tool) is None]
    counts = Counter(str(tool["name"]) for tool in good)
    if twice := [plain(name, _NAME) for name, count in counts.items() if count > 1]:
        text = f"several tools have the same name, and only the first is offered: {list_names(twice)}"
        yield CheckResult(about, "problem", text, f"{_AUTHOR}: a call cannot tell two tools of one name apart")
    yield from _schemas(upstream, good)
    changed = [
        f"{plain(str(tool['name']), _NAME)} ({', '.join(changes)})" for tool in good if (changes := _mended(tool))
    ]
    if changed:
        text = f"declared in a way that some hosts cannot handle, and corrected by the gateway: {list_names(changed)}"
        yield CheckResult(about, "warning", text, _AUTHOR)
    if silent := [plain(str(tool["name"]), _NAME) for tool in good if not _has_text(tool.get("description"))]:
        text = f"without a description, a model cannot know what these are for: {list_names(silent)}"
        yield CheckResult(
            about, "warning", text, f'upstreams.{upstream}.tools.describe = {{ {_key(silent[0])} = "..." }}'
        )


def offered(
    upstream: str, names: Sequence[str], renamed: Mapping[str, str], offers: Iterable[HostOffer]
) -> Iterator[CheckResult]:
    """Report the names of an upstream's tools that are changed for a host because they do not fit or collide.

    `names` are its usable tools, `renamed` the configuration's own names for them.
    """
    about = f"upstream {upstream}"
    unfit: dict[str, dict[str, str]] = {}
    clash: dict[str, dict[str, str]] = {}
    shortest: dict[str, int] = {}
    for offer in offers:
        for given, route in offer.catalogue.routes.items():
            wanted = renamed.get(route.tool, route.tool)
            full = f"{upstream}{SEPARATOR}{wanted}"
            if route.upstream != upstream or route.tool not in names or given in (wanted, full):
                continue
            host = offer.profile.name
            if offer.rules.fitted(full, full) == full:
                clash.setdefault(route.tool, {})[host] = given
            else:
                unfit.setdefault(route.tool, {})[host] = given
                room = offer.rules.budget - len(upstream) - len(SEPARATOR)
                shortest[route.tool] = min(room, shortest.get(route.tool, room))
    for tool, hosts in unfit.items():
        shown = plain(tool, _NAME)
        text = f"the name of the tool {shown!r} does not fit, and is shortened to {_first(hosts)!r}"
        remedy = (
            f"upstreams.{upstream}.tools.rename = {{ {_key(tool)} = "
            f'"at most {shortest[tool]} of letters, digits, _ and -" }}'
            if shortest[tool] >= 4
            else f"give the upstream {upstream!r} a shorter name"
        )
        yield CheckResult(about, "warning", text, remedy, tuple(hosts))
    for tool, hosts in clash.items():
        text = f"another tool has the name of {plain(tool, _NAME)!r} already, so it is offered as {_first(hosts)!r}"
        remedy = f'upstreams.{upstream}.tools.rename = {{ {_key(tool)} = "another name" }}'
        yield CheckResult(about, "warning", text, remedy, tuple(hosts))


def beyond(offers: Iterable[HostOffer]) -> Iterator[CheckResult]:
    """Report tools beyond the number that a host accepts, and settings for tools that do not exist."""
    over_limit: dict[str, list[str]] = {}
    unmatched: list[str] = []
    for offer in offers:
        if (note := offer.catalogue.over_limit) is not None:
            over_limit.setdefault(note.text, []).append(offer.profile.name)
        unmatched += (note.text for note in offer.catalogue.unmatched)
    for text, hosts in over_limit.items():
        choose = "choose with upstreams.<name>.tools.include and exclude which ones matter"
        yield CheckResult("tools", "warning", text, choose, tuple(hosts))
    for text in dict.fromkeys(unmatched):
        yield CheckResult("tools", "warning", text, "fix the name there, or remove the line")


def _schemas(upstream: str, tools: Sequence[Mapping[str, Any]]) -> Iterator[CheckResult]:
    about = f"upstream {upstream}"
    for tool in tools:
        name = plain(str(tool["name"]), _NAME)
        for member in ("inputSchema", "outputSchema"):
            if member not in tool:
                continue
            found = [fault for fault in faults(tool[member]) if fault.kind != "root"]
            if found:
                text = f"{member} of {name!r}: {plain('; '.join(map(str, found[:3])), 400)}"
                yield CheckResult(about, "problem", text, _schema_remedy(upstream, str(tool["name"]), found))
            elif member == "outputSchema" and not is_object_schema(tool[member]):
                text = f'outputSchema of {name!r} is none of type "object", and left out for hosts before 2026-07-28'
                yield CheckResult(about, "warning", text, _AUTHOR)


def _schema_remedy(upstream: str, tool: str, found: Sequence[Fault]) -> str:
    exclude = f"until then: upstreams.{upstream}.tools.exclude = [{_key(tool, always=True)}]"
    if any(fault.kind == "external" for fault in found):
        return f"the server's author has to put what $ref names into $defs, since no host fetches it; {exclude}"
    return f"{_AUTHOR}, since some hosts and model APIs refuse every tool for it; {exclude}"


def _mended(tool: Mapping[str, Any]) -> tuple[str, ...]:
    return repaired(tool)[1]


def _has_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _key(name: str, *, always: bool = False) -> str:
    """Return a name as a TOML key, in quotes if necessary."""
    shown = plain(name, _NAME)
    bare = not always and shown.isascii() and shown.replace("_", "").replace("-", "").isalnum()
    return shown if bare else json.dumps(shown, ensure_ascii=False)


def _first(names: Mapping[str, str]) -> str:
    return plain(next(iter(names.values())), _NAME)
