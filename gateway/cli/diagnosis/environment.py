"""Check the environment of the gateway: Python, the packages that make it faster, and PATH."""

import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from gateway._version import __version__
from gateway.cli.diagnosis.check_context import CheckContext
from gateway.cli.diagnosis.findings import CheckResult
from gateway.config.upstream_settings import UpstreamSettings
from gateway.system.runtime_dir import passed_over

ABOUT = "environment"
FAST = ("uvloop", "httptools") if sys.platform != "win32" else ("httptools",)
"""Packages that are installed where they exist, and that the gateway also works without."""
OLDEST_PYTHON = (3, 11)


async def check_environment(context: CheckContext) -> list[CheckResult]:
    """Check the versions of Python and the gateway, the extra packages, and PATH."""
    missing = [name for name in FAST if find_spec(name) is None]
    programs = {
        upstream.command: program_path(upstream, context.environ)
        for upstream in context.settings.upstreams.values()
        if upstream.enabled and upstream.command is not None
    }
    found = [*_python(sys.version_info[:2]), *_extras(missing), *_path(context.environ.get("PATH"), programs)]
    if (unused := passed_over()) is not None:
        text = "chmod 700 it if it is yours; until then, gateways are found only by who has the same folder"
        found.append(CheckResult(ABOUT, "warning", unused, text))
    return found


def program_path(upstream: UpstreamSettings, environ: Mapping[str, str]) -> str | None:
    """Return the path of an upstream's program; None if it cannot be found or run."""
    if upstream.command is None:
        return None
    return shutil.which(upstream.command, path=upstream.env.get("PATH") or environ.get("PATH"))


def _python(version: tuple[int, ...]) -> Iterator[CheckResult]:
    words = f"mcp-gateway {__version__}, Python {platform.python_version()} ({sys.executable}), {platform.system()}"
    if version < OLDEST_PYTHON:
        yield CheckResult(ABOUT, "problem", words, "Python 3.11 or newer is needed")
    else:
        yield CheckResult(ABOUT, "ok", words)


def _extras(missing: list[str]) -> Iterator[CheckResult]:
    if not missing:
        yield CheckResult(ABOUT, "ok", f"{' and '.join(FAST)} are installed: HTTP is fast")
    else:
        text = f"{' and '.join(missing)} not installed: HTTP works, a little slower"
        yield CheckResult(ABOUT, "ok", text, f"pip install {' '.join(missing)}")


def _path(path: str | None, programs: Mapping[str, str | None]) -> Iterator[CheckResult]:
    if not path:
        text = "PATH is empty, so that no program can be found by its name"
        yield CheckResult(
            ABOUT, "problem" if programs else "warning", text, "set PATH, or give absolute paths as command"
        )
        return
    by_name = {name: place for name, place in programs.items() if not Path(name).is_absolute()}
    bare = [f"{name} ({place})" for name, place in by_name.items() if place is not None]
    if bare:
        text = f"found on the PATH: {', '.join(bare)}"
        remedy = "a desktop program starts the gateway with a PATH of its own: absolute paths are safe there"
        yield CheckResult(ABOUT, "ok", text, remedy)
