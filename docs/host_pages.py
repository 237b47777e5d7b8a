"""The page of each host: how the gateway is registered in it, what it shows its model, and its limits."""

import json
from collections.abc import Mapping
from typing import Any

from gateway.core.model.profile import Evidence, Profile
from gateway.registration.hosts import HOSTS, Host
from gateway.registration.launching import Launch
from gateway.registration.surroundings import Surroundings

_PLATFORMS = {
    "Linux": Surroundings("linux", "~", "<project>", {}),
    "macOS": Surroundings("darwin", "~", "<project>", {}),
    "Windows": Surroundings("win32", "%USERPROFILE%", "<project>", {"APPDATA": "%APPDATA%"}),
}
_LAUNCH = Launch("/absolute/path/to/mcp-gateway", ("serve", "--config", "/absolute/path/to/mcp-gateway.toml"), {})


def host_pages(profiles: Mapping[str, Profile]) -> dict[str, str]:
    """File name → page, for every host that is known by its configuration file or by a profile of its own."""
    own = {name for name, profile in profiles.items() if profile.match}
    names = sorted({*HOSTS, *own})
    pages = {f"{name}.md": _page(name, HOSTS.get(name), profiles.get(name), profiles["default"]) for name in names}
    titles = {name: HOSTS[name].title if name in HOSTS else profiles[name].title for name in names}
    rows = [
        f"| [{titles[name]}]({name}.md) | {f'`mcp-gateway install {name}`' if name in HOSTS else 'by hand'} "
        f"| {'a profile of its own' if name in own else 'the `default` profile: nothing is known of it yet'} |"
        for name in names
    ]
    index = [
        "# Hosts\n",
        "*Written by docs/generate.py from the profiles and from what is known of the hosts' files.*\n",
        "| host | registered with | its results |",
        "|---|---|---|",
        *rows,
    ]
    return {"README.md": "\n".join(index) + "\n", **pages}


def _page(name: str, host: Host | None, profile: Profile | None, default: Profile) -> str:
    title = host.title if host else profile.title if profile else name
    shown = profile or default
    parts = [f"# {title}\n", "*Written by docs/generate.py.*\n", "## Registration\n"]
    parts += _registration(host) if host else ["Add the gateway by hand, as any MCP server: `mcp-gateway serve`.\n"]
    parts.append("## What it shows its model\n")
    if profile is None:
        parts.append(
            "Nothing has been measured of this host, so it gets the `default` profile: what arrives everywhere.\n"
        )
    parts += [" ".join(shown.about.split()) + "\n", "| | |", "|---|---|", *_shows(shown), "", "## Its limits\n"]
    parts += ["| | | how it is known |", "|---|---|---|", *_limits(shown), ""]
    parts.append(
        f"Every value with its evidence: [profiles](../profiles.md), or `mcp-gateway profiles show {shown.name}`.\n"
    )
    return "\n".join(parts)


def _registration(host: Host) -> list[str]:
    files = [
        f"| {platform} | `{places[0].path}` |"
        for platform, at in _PLATFORMS.items()
        if (places := [place for place in host.places(at) if place.scope == "user" and not place.only_if_there])
    ]
    entry: dict[str, Any] = host.entry(_LAUNCH)
    for table in reversed((*host.table, "gateway")):
        entry = {table: entry}
    written = json.dumps(entry, indent=2) if host.syntax == "json" else _toml(host)
    return [
        f"    mcp-gateway install {host.name}\n",
        f"Then {host.after}. `mcp-gateway uninstall {host.name}` gives the file back as it was. By hand, in\n",
        "| | file |",
        "|---|---|",
        *files,
        "",
        f"```{host.syntax}\n{written}\n```\n",
        f"The vendor's page: <{host.page}>\n",
    ]


def _toml(host: Host) -> str:
    args = json.dumps(list(_LAUNCH.args))
    return f'[{".".join(host.table)}.gateway]\ncommand = "{_LAUNCH.command}"\nargs = {args}'


def _shows(profile: Profile) -> list[str]:
    image = profile.image
    types = ", ".join(kind.removeprefix("image/").upper() for kind in image.types) or "all types"
    images = "named in a line" if image.show == "line" else f"{types}; others are converted"
    when = {"same-turn": "with the result", "next-turn": "only from the next turn on", "unknown": "not known"}
    return [
        f"| images | {images} |",
        f"| when the model sees them | {when[profile.shown]} |",
        f"| order | {'kept' if profile.order == 'kept' else 'text first, numbered markers where images stood'} |",
        f"| sound | {'shown' if profile.audio.show == 'native' else 'named in a line'} |",
        f"| documents | {'shown' if profile.blob.show == 'native' else 'named in a line'} |",
        f"| links | {'as they are' if profile.link.show == 'native' else 'one line each'} |",
        f"| structured data | {'as it is' if profile.structured.send == 'always' else 'as text, once'} |",
        f"| errors | {_error(profile)} |",
    ]


def _error(profile: Profile) -> str:
    words = {"keep": "media beside the flag", "unflag": "said in text, so that media is shown", "line": "media named"}
    return words[profile.error.media] + (", with `ERROR:` in the text" if profile.error.prefix else "")


def _limits(profile: Profile) -> list[str]:
    values = {
        "image.max_edge": ("pixels on the longer edge", profile.image.max_edge),
        "image.max_count": ("images in a result", profile.image.max_count),
        "image.max_bytes": ("bytes of an image", profile.image.max_bytes),
        "text.max_chars": ("characters of text", profile.text.max_chars),
        "limits.result_chars": ("characters of the whole result", profile.limits.result_chars),
        "tools.name_max": ("characters of a tool's name, its own prefix included", profile.tools.name_max),
        "tools.description_max": ("characters of a description", profile.tools.description_max),
    }
    return [
        f"| {words} | {f'{value:,}' if value else 'none known'} | {_known(profile.evidence.get(path))} |"
        for path, (words, value) in values.items()
    ]


def _known(evidence: Evidence | None) -> str:
    if evidence is None:
        return ""
    version = f", {evidence.host_version}" if evidence.host_version else ""
    return f"{evidence.level.replace('_', ' ')}{version}, {evidence.checked}"
