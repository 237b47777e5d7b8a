"""Finding the configuration file, and files that it names.

Standard library only: this runs before a host's first message is answered.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

FILE_NAME = "mcp-gateway.toml"
FILE_VARIABLE = "MCP_GATEWAY_CONFIG"
CACHE_VARIABLE = "MCP_GATEWAY_CACHE"
PROFILES_VARIABLE = "MCP_GATEWAY_PROFILES"
STATE_VARIABLE = "MCP_GATEWAY_STATE"


def find_file(path: Path | None, *, environ: Mapping[str, str], cwd: Path | None = None) -> Path | None:
    """Return the configuration file to read: the requested one, existing or not, or else the first that exists."""
    if path is not None:
        return path
    if named := environ.get(FILE_VARIABLE):
        return Path(named)
    return next((place for place in config_candidates(cwd) if place.is_file()), None)


def config_candidates(cwd: Path | None = None) -> Iterator[Path]:
    """Yield the places where a configuration file is looked for if none is named, in order."""
    yield Path(FILE_NAME) if cwd is None else cwd / FILE_NAME
    import platformdirs  # here, because most starts do not need it

    yield platformdirs.user_config_path("mcp-gateway", appauthor=False) / FILE_NAME


def absolute_path(path: str, folder: Path, environ: Mapping[str, str]) -> Path:
    """Return the absolute path of what a configuration in `folder` names; `~/` is the home folder of `environ`."""
    if path.startswith("~/") and (home := environ.get("HOME")):
        return Path(home) / path[2:]
    return (folder / path).absolute()


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder for data that can be recreated; None if `$MCP_GATEWAY_CACHE` is set to an empty value."""
    if (named := environ.get(CACHE_VARIABLE)) is not None:
        return Path(named) if named else None
    import platformdirs

    return platformdirs.user_cache_path("mcp-gateway", appauthor=False)


def profiles_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of the profiles that `calibrate` measured; None if `$MCP_GATEWAY_PROFILES` is set but empty."""
    if (named := environ.get(PROFILES_VARIABLE)) is not None:
        return Path(named) if named else None
    import platformdirs

    return platformdirs.user_config_path("mcp-gateway", appauthor=False) / "profiles"


def state_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder for data that cannot be recreated, such as keys; None if `$MCP_GATEWAY_STATE` is empty."""
    if (named := environ.get(STATE_VARIABLE)) is not None:
        return Path(named) if named else None
    import platformdirs

    return platformdirs.user_state_path("mcp-gateway", appauthor=False)
