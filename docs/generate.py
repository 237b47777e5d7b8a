"""Generate the parts of the documentation that come from data: `python docs/generate.py`; `--check` only compares.

Generated are the rooms in docs/architecture.md, docs/configuration.md, docs/cli.md, docs/envelope.md, docs/models/,
docs/hosts/, the tables in docs/tokens.md, the values in docs/profiles.md, docs/frameworks.md, the tables of hosts in
the README and docs/apps.md, that of clients in docs/proxy.md, docs/hosts/matrix.md and the JSON in docs/matrix. A test
holds them to the data.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import typer

from gateway.cli.app import application
from gateway.config.builtin_profiles import builtin_profiles, model_profiles, token_formulas
from gateway.config.reference import describe_keys, describe_profile_keys
from gateway.core.model.envelope import RAW_KEY, envelope_json_schema
from gateway.core.model.media_types import extension
from gateway.core.profiles.model_profile import ModelImages, ModelMedia, ModelProfile
from gateway.core.profiles.profile import Profile

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]
from evidence import facts  # noqa: E402 - the modules beside this one, and lab
from frameworks_page import frameworks_page  # noqa: E402
from host_matrix import (  # noqa: E402
    characters,
    errors,
    evidence_page,
    hosts_page,
    images,
    known_words,
    page_rights_table,
    pages_table,
    popular,
    shown,
)
from host_pages import host_pages  # noqa: E402
from host_runs import lab_page  # noqa: E402
from matrix_page import matrix_pages  # noqa: E402
from matrix_table import matrix_table  # noqa: E402
from peer_tables import tables  # noqa: E402
from rooms import drawing, table  # noqa: E402
from token_tables import formula_evidence, formula_table, host_table  # noqa: E402

README = DOCS.parent / "README.md"


def pages() -> dict[Path, str]:
    """Return the text of every generated page."""
    profiles = builtin_profiles()
    return {
        README: _filled(README, hosts=_hosts(profiles)),
        DOCS / "apps.md": _filled(DOCS / "apps.md", hosts=pages_table(profiles), rights=page_rights_table(profiles)),
        DOCS / "proxy.md": _filled(DOCS / "proxy.md", clients=matrix_table()),
        DOCS / "configuration.md": _configuration(),
        DOCS / "profiles.md": _filled(DOCS / "profiles.md", values=describe_profile_keys().rstrip() + "\n"),
        DOCS / "cli.md": _commands(),
        DOCS / "architecture.md": _filled(DOCS / "architecture.md", drawing=drawing(), rooms=table()),
        DOCS / "envelope.md": _envelope(),
        DOCS / "frameworks.md": frameworks_page(),
        DOCS / "tokens.md": _tokens(profiles),
        **_models(model_profiles()),
        DOCS / "hosts" / "README.md": hosts_page(profiles),
        DOCS / "hosts" / "evidence.md": evidence_page(profiles),
        DOCS / "hosts" / "lab.md": lab_page(),
        **{DOCS / "hosts" / name: text for name, text in host_pages(profiles).items()},
        **matrix_pages(profiles),
    }


def _filled(page: Path, **texts: str) -> str:
    """Return a page with each named text filled in."""
    whole = page.read_text("utf-8")
    for name, text in texts.items():
        begin, end = f"<!-- {name}:begin (written by docs/generate.py) -->\n", f"<!-- {name}:end -->"
        before, rest = whole.split(begin, 1)
        whole = before + begin + text + end + rest.split(end, 1)[1]
    return whole


def _tokens(profiles: Mapping[str, Profile]) -> str:
    formulas = token_formulas()
    return _filled(
        DOCS / "tokens.md",
        hosts=host_table(profiles),
        formulas=formula_table(formulas),
        evidence=formula_evidence(formulas),
    )


def _hosts(profiles: Mapping[str, Profile]) -> str:
    lines = [
        "| host | images | sound | PDF | an image beside an error | text, at most | known from |",
        "|---|---|---|---|---|---|---|",
    ]
    for profile in popular(profiles):
        late = ", a turn late" if profile.shown == "next-turn" else ""
        lines.append(
            f"| [{profile.title}](docs/hosts/evidence.md#{profile.name}) | {images(profile)}{late} "
            f"| {shown(profile.audio.show)} | {shown(profile.document.show).replace('as they are', 'as it is')} "
            f"| {errors(profile)} | {characters(profile.text.max_chars)} | {known_words(profile, profiles)} |"
        )
    return "\n".join(lines) + "\n"


def _configuration() -> str:
    return (
        "# mcp-gateway.toml\n\n"
        "*Written by docs/generate.py from the schema.* The configuration is the file named by `--config` or\n"
        "`$MCP_GATEWAY_CONFIG`, else `./mcp-gateway.toml`, else the one in the user's config folder. Relative paths\n"
        "are relative to the file. Values may use `${NAME}` and `${NAME:-default}`; `$${` is a literal `${`.\n"
        "`${MCP_GATEWAY_PYTHON}` is the Python that runs the gateway. A JSON file with `mcpServers` (or VS Code's\n"
        "`servers`) is accepted as well.\n\n"
        "Secrets need not be in the file, nor in the environment. They are read whenever the configuration is, all\n"
        "within 60 seconds. Each is a single line of text, except in an upstream's `env`; logs and errors hide it\n"
        "from six characters on:\n\n"
        "| value | where the secret is |\n|---|---|\n"
        "| `${file:PATH}` | a regular file, relative to this one or with `~/`; its last line end is left out |\n"
        "| `${keyring:NAME}` | the operating system's keyring: `mcp-gateway secret set NAME` stores it there |\n"
        "| `${keyring:SERVICE/NAME}` | the same, of another program |\n"
        "| `${cmd:COMMAND}` | what a command prints, such as a vault's own: `${cmd:op read op://team/docs/token}` |\n\n"
        "A command runs without a shell, a terminal and stdin, and what it leaves running in the background is ended.\n"
        "References cannot be nested: `${cmd:sh -c 'echo $HOME'}`, not `${cmd:echo ${HOME}}`.\n\n"
        'Times are numbers of seconds, or `"30s"`, `"5m"`, `"1h30m"`, `"2d"`. Sizes are numbers of bytes, or\n'
        '`"500kB"`, `"4GB"` (powers of 1,000), `"64MiB"`, `"2GiB"` (powers of 1,024).\n\n' + describe_keys() + "\n"
    )


def _commands() -> str:
    command = typer.main.get_command(application())
    parts = [
        "# Commands\n",
        "*Written by docs/generate.py from the commands themselves.*\n",
        _help(command, "mcp-gateway"),
    ]
    for name, below in command.commands.items():  # type: ignore[attr-defined]
        parts.append(_help(below, f"mcp-gateway {name}"))
        further = {inner: one for inner, one in getattr(below, "commands", {}).items() if not one.hidden}
        parts += [_help(one, f"mcp-gateway {name} {inner}") for inner, one in further.items()]
    return "\n".join(parts)


def _help(command: object, name: str) -> str:
    width = {"terminal_width": 100, "max_content_width": 100}
    context = command.make_context(name, [], resilient_parsing=True, help_option_names=["-h", "--help"], **width)  # type: ignore[attr-defined]
    return f"## {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"  # type: ignore[attr-defined]


def _models(profiles: Mapping[str, ModelProfile]) -> dict[Path, str]:
    pages = {DOCS / "models" / f"{name}.md": _model(name, profile) for name, profile in profiles.items()}
    lines = [
        "# Model APIs\n",
        "*Written by docs/generate.py from the model profiles.* How the results of a turn are written for each API;"
        " [library](../library.md) says how to use this. *In the tool message*: natively; *after*: in one message after"
        " all tool messages of the turn, with a marker in the original place; a dash: named in a line.\n",
        "| target | images | sound | documents | video | errors |",
        "|---|---|---|---|---|---|",
    ]
    for name, profile in sorted(profiles.items()):
        kinds = " | ".join(_place(rules) for rules in (profile.image, profile.audio, profile.document, profile.video))
        error = "the API's flag" if profile.error.flag else "`ERROR:` in the text"
        lines.append(f"| [{profile.title}]({name}.md) (`{name}`) | {kinds} | {error} |")
    lines += ["", _blind(profiles), tables(list(profiles))]
    return {DOCS / "models" / "README.md": "\n".join(lines) + "\n", **pages}


def _blind(profiles: Mapping[str, ModelProfile]) -> str:
    """Return the section on models that see no images, or take those of tools in a different place."""
    lines = [
        "## Models that differ\n",
        "The patterns match the model's name, with or without its vendor (`openai/gpt-3.5-turbo`). A model that sees no"
        " images gets lines that name them. A target inherits the list of the target that it is based on, unless it has"
        " its own.\n",
        "| target | models | |",
        "|---|---|---|",
    ]
    for name, profile in sorted(profiles.items()):
        for globs, what in (
            (profile.blind_models, "see no images"),
            (profile.image.in_tool_models, "take images in the tool's message"),
            (profile.image.after_reply_models, "take images after an assistant reply"),
        ):
            if globs and not (profile.lineage and globs in _globs(profiles[profile.lineage[0]])):
                lines.append(f"| {name} | {', '.join(f'`{glob}`' for glob in globs)} | {what} |")
    return "\n".join([*lines, ""])


def _globs(profile: ModelProfile) -> tuple[tuple[str, ...], ...]:
    return profile.blind_models, profile.image.in_tool_models, profile.image.after_reply_models


def _place(rules: ModelImages | ModelMedia) -> str:
    if rules.place == "none":
        return "-"
    named = (extension(kind) if kind.startswith("application/") else kind.split("/")[-1] for kind in rules.types)
    types = ", ".join(named)
    return f"{'in the tool message' if rules.place == 'in_tool' else 'after'}: {types}"


def _model(name: str, profile: ModelProfile) -> str:
    golden = DOCS.parent / "tests" / "core" / "model_apis" / "golden" / f"{name}.json"
    return "\n".join(
        [
            f"# {profile.title} (`{name}`)\n",
            "*Written by docs/generate.py from the profile and its golden file.*\n",
            " ".join(profile.about.split()) + "\n",
            *facts(profile, model_profiles()),
            "## One turn\n",
            "Three parallel calls: text, PNG, text, WebP; a failed call with a GIF; a PDF, a WAV, an MP4 and structured"
            " content. These messages follow the assistant's, with notes of what was changed:\n",
            f"```json\n{golden.read_text('utf-8').rstrip()}\n```\n",
        ]
    )


def _envelope() -> str:
    schema = json.dumps(envelope_json_schema(), indent=2)
    return (
        "# The envelope\n\n"
        "*Written by docs/generate.py.* The envelope is one canonical form for every `CallToolResult`, of any\n"
        "protocol revision: the blocks in order, each with every field that arrived, structured content, the error\n"
        "flag, and everything else under `rest`.\n\n"
        "## What an upstream may add\n\n"
        "| | |\n|---|---|\n"
        f'| `_meta["{RAW_KEY}"]` of a result | the content of a tool message in a model API\'s own shape, by target:'
        ' `{"anthropic_messages": [{"type": "search_result", ...}]}`. That target gets it unchanged, all others'
        " get the normal content. Only what may stand in a tool message is accepted ([see](models/README.md)), at most"
        " 100 blocks and 20,000,000 characters; the rest is noted. It is not sent to hosts with little room. |\n"
        "| a `resource_link` with the uri `openai-file:<id>`, `anthropic-file:<id>`, `gemini-file:files/<id>` or"
        " `mistral-file:<id>` | a file that this provider keeps: its API gets it by its id, if it accepts the"
        " link's `mimeType`; for all other APIs it becomes a line, with a note. |\n\n"
        f"## Its JSON schema\n\n```json\n{schema}\n```\n"
    )


def main() -> int:
    """Write the pages that have changed; with --check, only list them."""
    stale = {path: text for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in stale.items():
        print(f"{'out of date' if '--check' in sys.argv else 'written'}: {path.relative_to(DOCS.parent)}")
        if "--check" not in sys.argv:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
