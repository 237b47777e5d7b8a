"""The lock files are in step with what pyproject.toml and package.json ask for. Needs no network: `make lock` does."""

import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGE = json.loads((ROOT / "package.json").read_text("utf-8"))
PACKAGE_LOCK = json.loads((ROOT / "package-lock.json").read_text("utf-8"))


@dataclass(frozen=True)
class Pin:
    """One entry of a lock; `asked` is whether pyproject.toml itself names it."""

    version: str
    hashes: tuple[str, ...]
    asked: bool


def pins(lock: str) -> dict[str, Pin]:
    """The entries of `requirements/<lock>.txt` by name."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text("utf-8")
    entries = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)(.*(?:\n[ ].*)*)", text, re.MULTILINE)
    return {
        canonicalize_name(name): Pin(version, tuple(re.findall(r"--hash=(\S+)", rest)), "(pyproject.toml" in rest)
        for name, version, rest in entries
    }


def group(name: str) -> list[str]:
    """The requirements of a dependency group, those of included groups among them."""
    found: list[str] = []
    for entry in PROJECT["dependency-groups"][name]:
        found += group(entry["include-group"]) if isinstance(entry, dict) else [entry]
    return found


RUNTIME = PROJECT["project"]["dependencies"]
EXTRAS = [line for extra in PROJECT["project"]["optional-dependencies"].values() for line in extra]
ASKED = {
    "runtime": RUNTIME,
    "build": group("build"),
    "dev": [*RUNTIME, *EXTRAS, *group("dev")],
    "old-clients": group("old-clients"),
    "data-designer": group("data-designer"),
    "bench-fastmcp": group("bench-fastmcp"),
    "bench-mcp-proxy": group("bench-mcp-proxy"),
    "lowest": [*RUNTIME, *group("lowest")],
}


@pytest.mark.parametrize("lock", sorted(ASKED))
def test_every_requirement_is_locked_at_a_version_that_it_allows(lock: str) -> None:
    locked = pins(lock)
    for requirement in map(Requirement, ASKED[lock]):
        pin = locked.get(canonicalize_name(requirement.name))
        assert pin is not None, f"{requirement.name} is not in requirements/{lock}.txt: make lock"
        assert pin.version in requirement.specifier, f"{lock}.txt has {pin.version}, wanted is {requirement}: make lock"


@pytest.mark.parametrize("lock", sorted(ASKED))
def test_nothing_is_locked_that_nobody_asks_for(lock: str) -> None:
    asked = {canonicalize_name(Requirement(line).name) for line in ASKED[lock]}
    locked = {name for name, pin in pins(lock).items() if pin.asked}
    assert locked == asked, "make lock"


@pytest.mark.parametrize("lock", sorted(ASKED))
def test_every_locked_package_has_hashes(lock: str) -> None:
    locked = pins(lock)
    assert locked
    assert [name for name, pin in locked.items() if not pin.hashes] == []


@pytest.mark.parametrize("file", ["Makefile", "deploy/container/Dockerfile"])
def test_what_is_locked_is_installed_and_nothing_is_resolved_again(file: str) -> None:
    # Through a package's extra (`google-auth[requests]`), pip meets a release that is newer than the lock, and ends.
    lines = [line for line in (ROOT / file).read_text("utf-8").splitlines() if "--require-hashes" in line]
    assert lines
    assert [line for line in lines if "--no-deps" not in line] == []


def test_what_is_installed_has_all_that_it_needs() -> None:
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("line", RUNTIME)
def test_the_lowest_version_that_users_may_install_is_one_that_the_tests_have_run_with(line: str) -> None:
    requirement = Requirement(line)
    (bound,) = [Version(each.version) for each in requirement.specifier if each.operator == ">="]
    tried = pins("lowest")[canonicalize_name(requirement.name)]
    assert Version(tried.version) == bound, "make lock, then make lowest"


@pytest.mark.parametrize("lock", ["runtime", "build"])
def test_the_small_locks_are_parts_of_the_large_one(lock: str) -> None:
    development = {name: (pin.version, pin.hashes) for name, pin in pins("dev").items()}
    assert {name: (pin.version, pin.hashes) for name, pin in pins(lock).items()}.items() <= development.items()


@pytest.mark.parametrize("line", [*RUNTIME, *EXTRAS])
def test_what_users_install_has_a_lower_and_an_upper_bound(line: str) -> None:
    operators = {specifier.operator for specifier in Requirement(line).specifier}
    assert operators == {">=", "<"}


def test_the_wheel_is_built_by_what_is_locked_for_building() -> None:
    assert set(PROJECT["build-system"]["requires"]) <= set(group("build"))


def test_the_npm_lock_is_of_this_package_json() -> None:
    root = PACKAGE_LOCK["packages"][""]
    assert root["devDependencies"] == PACKAGE["devDependencies"], "make lock"
    for name, version in PACKAGE["devDependencies"].items():
        assert PACKAGE_LOCK["packages"][f"node_modules/{name}"]["version"] == version


def test_the_npm_lock_has_hashes_and_no_addresses() -> None:
    packages = {path: entry for path, entry in PACKAGE_LOCK["packages"].items() if path}
    assert packages
    assert [path for path, entry in packages.items() if "resolved" in entry] == []
    assert [path for path, entry in packages.items() if "integrity" not in entry] == []
