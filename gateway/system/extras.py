"""How an extra of this package is added to the installation that runs."""

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gateway.core.model.json_values import as_object

PACKAGE = "mcp-multimodal-gateway"


def install_extra(extra: str) -> str:
    """Return the command that adds an extra: by the tool, and from the clone or file, that this was installed with."""
    return extra_command(extra, Path(sys.prefix), sys.executable, _direct_url())


def extra_command(extra: str, prefix: Path, python: str, direct_url: str | None) -> str:
    """Return the command for an environment; `direct_url` is the text of direct_url.json (PEP 610), if any."""
    what, is_editable = _source(direct_url)
    wanted = shlex.quote(f"{what}[{extra}]")
    editable = "--editable " if is_editable else ""
    match prefix.parts[-3:-1]:
        case ("uv", "tools"):
            return f"uv tool install --force {editable}{wanted}"
        case ("pipx", "venvs"):
            return f"pipx install --force {editable}{wanted}"
        case _:
            return f"{shlex.quote(python)} -m pip install {editable}{wanted}"


def _source(direct_url: str | None) -> tuple[str, bool]:
    """Return the folder, file or name that was installed, and whether it is editable."""
    try:
        told = as_object(json.loads(direct_url or "null"))
        url = urlsplit(str(told.get("url")))
    except ValueError:
        return PACKAGE, False
    if url.scheme != "file":
        return PACKAGE, False
    return unquote(url.path), as_object(told.get("dir_info")).get("editable") is True


def _direct_url() -> str | None:
    try:
        return distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
