"""The page of each host in docs/hosts: how to register the gateway, what the host shows its model, and its limits."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from host_runs import measured

from gateway.core.profiles.profile import Evidence, Profile
from gateway.core.profiles.profile_words import read_with_page
from gateway.hosts.config_files.documents import Document, Syntax
from gateway.hosts.config_files.host_format import HostFormat
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.launch_command import Launch
from gateway.hosts.config_files.machine import Machine
from lab.record import HOSTS_FOLDER, records

_PLATFORMS = {
    "Linux": Machine("linux", "~", "<project>", {}),
    "macOS": Machine("darwin", "~", "<project>", {}),
    "Windows": Machine(
        "win32", "%USERPROFILE%", "<project>", {name: f"%{name}%" for name in ("APPDATA", "LOCALAPPDATA")}
    ),
}
_LAUNCH = Launch("/absolute/path/to/mcp-gateway", ("serve", "--config", "/absolute/path/to/mcp-gateway.toml"), {})


_COMMANDS = {
    "claude-code": """\
Or have its own command write that file: the gateway as a program of its own, or the one that `mcp-gateway serve --http`
runs, with a token only where that asks for one (`claude mcp add --help` of 2.1.197):

```console
$ claude mcp add --scope user gateway -- COMMAND
$ claude mcp add --scope user --transport http gateway http://127.0.0.1:8484/mcp --header "Authorization: Bearer TOKEN"
```

`--scope user` is for all your projects; without it, the gateway is registered for the current folder alone.
""",
}
"""Commands of hosts that register a server, by the host's name. `COMMAND` is the gateway's own."""

_SHOWN = {
    "native": "shown",
    "line": "named in a line",
    "file": "as the path of a file",
    "text": "as text",
    "pages": "as images of their pages",
    "inline": "their content is shown",
}


def host_pages(profiles: Mapping[str, Profile]) -> dict[str, str]:
    """Return file name → page, for every host whose configuration file is known."""
    return {
        f"{name}.md": _page(host, profiles.get(host.profile or name), profiles) for name, host in sorted(HOSTS.items())
    }


def _page(host: HostFormat, profile: Profile | None, profiles: Mapping[str, Profile]) -> str:
    shown = profile or profiles["default"]
    purpose = f"How to register the gateway in {host.title}, what it shows its model, and its limits."
    parts = [
        f"# {host.title}\n",
        f"*Written by docs/generate.py.* {purpose}\n",
        "## Registration\n",
        *_registration(host),
    ]
    parts.append("## What it shows its model\n")
    if profile is None:
        parts.append(
            "It has no profile of its own yet, so it gets the `default` profile, which works everywhere. "
            "`--profile NAME` chooses another, `mcp-gateway calibrate` makes one.\n"
        )
    if profile is not None:
        parts.append(f"{_measured(profile, profiles)}.\n")
    parts += [" ".join(shown.about.split()) + "\n", "| | |", "|---|---|", *_shows(shown), "", "## Its limits\n"]
    parts += ["| limit | value | evidence |", "|---|---|---|", *_limits(shown), ""]
    there = f"[what is known](evidence.md#{shown.name}), or `mcp-gateway profiles show {shown.name}`"
    parts.append(
        f"Every value with its evidence: {there}. What it shows of each kind of result: [matrix](matrix.md).\n"
    )
    return "\n".join(parts)


def _measured(profile: Profile, profiles: Mapping[str, Profile]) -> str:
    """How the profile is known, as a sentence. A run of the lab is not what the single values were measured by."""
    words = measured(profiles)[profile.name]
    if words == "nothing":
        return "This is not known from the host itself"
    if any(profile.name in record.profiles.values() for record in records(HOSTS_FOLDER)):
        run = words.replace("measured with", "with version", 1)
        own = "has its own evidence, which may be of another version and day"
        return f"The last [run of the lab](lab.md) was {run}. Each limit below {own}"
    return f"This is {words}"


def _registration(host: HostFormat) -> list[str]:
    files = [
        f"| {platform} | `{places[0].path}` |"
        for platform, at in _PLATFORMS.items()
        if (places := [place for place in host.places(at) if place.scope == "user" and not place.only_if_there])
    ]
    written = _WRITTEN[host.syntax](host)
    return [
        f"    mcp-gateway install {host.name}\n",
        f"Then {host.after}. `mcp-gateway uninstall {host.name}` restores the file. To do it by hand, edit\n",
        "| | file |",
        "|---|---|",
        *files,
        "",
        f"```{host.syntax}\n{written}\n```\n",
        *(
            [_COMMANDS[host.name].replace("COMMAND", " ".join([_LAUNCH.command, *_LAUNCH.args]))]
            if host.name in _COMMANDS
            else []
        ),
        *([f"{host.title}: {host.hint}.\n"] if host.hint else []),
        f"Vendor documentation: <{host.page}>\n",
    ]


def _json(host: HostFormat) -> str:
    entry: dict[str, Any] = host.entry("gateway", _LAUNCH)
    for table in reversed((*host.table, "gateway")):
        entry = {table: entry}
    return json.dumps(entry, indent=2)


def _yaml(host: HostFormat) -> str:
    entry = host.entry("gateway", _LAUNCH)
    document = Document("", "yaml", host.name).with_server(host.table, "gateway", entry)
    for setting, value in host.settings.items():
        document = document.with_setting(setting, value)
    return document.text.rstrip()


def _toml(host: HostFormat) -> str:
    args = json.dumps(list(_LAUNCH.args))
    return f'[{".".join(host.table)}.gateway]\ncommand = "{_LAUNCH.command}"\nargs = {args}'


_WRITTEN: Mapping[Syntax, Callable[[HostFormat], str]] = {"json": _json, "toml": _toml, "yaml": _yaml}


def _shows(profile: Profile) -> list[str]:
    image = profile.image
    types = ", ".join(kind.removeprefix("image/").upper() for kind in image.types) or "all types"
    images = f"{types}; others are converted" if image.show == "native" else _SHOWN[image.show]
    when = {"same-turn": "with the result", "next-turn": "only from the next turn on", "unknown": "not known"}
    return [
        f"| images | {images} |",
        f"| when the model sees them | {when[profile.shown]} |",
        f"| order | {'kept' if profile.order == 'kept' else 'text first, numbered markers where images stood'} |",
        f"| sound | {_SHOWN[profile.audio.show]} |",
        f"| documents | {_SHOWN[profile.document.show]} |",
        f"| links | {_SHOWN[profile.link.show]} |",
        f"| structured data | {_structured(profile)} |",
        f"| errors | {_error(profile)} |",
        f"| pages ([MCP Apps](../apps.md)) | {_pages(profile)} |",
    ]


def _structured(profile: Profile) -> str:
    if profile.structured.send == "always":
        return "unchanged"
    gets_pages = profile.apps.host == "always" or (profile.apps.host == "declared" and profile.apps.declares)
    if not gets_pages:
        return "as text, once"
    page = "which has to read the first text instead" if profile.apps.data == "text" else "for the page to read"
    read = read_with_page(profile)
    model = "" if read == "?" else f"; of those, the model reads {read}"
    return f"as text, once; unchanged from tools with a page, {page}{model}"


def _pages(profile: Profile) -> str:
    """What is known of whether the host shows pages; one that declares the extension is sent them."""
    apps = profile.apps
    shows = {True: "shown to the user", False: "not shown", None: "not known whether they are shown"}[apps.shows]
    shows += ", in some sessions only" if apps.shows and apps.sessions == "some" else ""
    declares = {True: ", the extension is declared", False: ", the extension is not declared", None: ""}[apps.declares]
    rights = "; [what they may do](../apps.md#what-hosts-may-refuse)" if apps.shows else ""
    return shows + declares + rights


def _error(profile: Profile) -> str:
    words = {
        "keep": "media beside the flag",
        "unflag": "reported in text, so media is shown",
        "line": "media named",
    }
    return words[profile.error.media] + (", with `ERROR:` in the text" if profile.error.prefix else "")


def _limits(profile: Profile) -> list[str]:
    values = {
        "image.max_edge": ("pixels on the longer edge", profile.image.max_edge),
        "image.max_count": ("images in a result", profile.image.max_count),
        "image.max_bytes": ("bytes of an image", profile.image.max_bytes),
        "text.max_chars": ("characters of text", profile.text.max_chars),
        "limits.result_chars": ("characters of the whole result", profile.limits.result_chars),
        "tools.name_max": ("characters of a tool's name, including the host's prefix", profile.tools.name_max),
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
