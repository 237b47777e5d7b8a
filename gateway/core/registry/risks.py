"""What a person should look at before a server of a registry is added: options that open the machine to it. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

_OPENING: Mapping[str, Mapping[str, str]] = {
    "docker": {
        "--privileged": "the container may do everything that the machine's administrator may",
        "--cap-add": "the container gets rights of the machine's administrator",
        "--device": "the container gets a device of this machine",
        "--pid": "the container sees the machine's processes",
        "--security-opt": "protections of the container are changed",
        "--userns": "protections of the container are changed",
        "--ipc": "the container sees what the machine's processes share",
        "--volumes-from": "the container gets the files of another one",
        "--env-file": "the container gets the variables in a file of this machine",
        "--entrypoint": "another program than the image's own is run in the container",
    },
    "npx": {
        "-c": "a shell runs what follows it",
        "--call": "a shell runs what follows it",
        "-p": "another package is installed with it",
        "--package": "another package is installed with it",
        "--registry": "packages are taken from another registry",
        "--userconfig": "another configuration of npm is used",
        "--prefix": "packages are taken from a folder",
        "--node-options": "other code is loaded before the package",
    },
    "uvx": {
        "--from": "the package that is installed is the one that follows it",
        "--with": "another package is installed with it",
        "-w": "another package is installed with it",
        "--with-editable": "another package is installed with it",
        "--with-requirements": "other packages are installed with it",
        "--find-links": "packages are taken from another place",
        "--overrides": "other versions of packages are installed",
        "--python": "it chooses the program that runs it",
        "--config-file": "another configuration of uv is used",
        "--env-file": "the server gets the variables in a file of this machine",
        "--default-index": "packages are taken from another index",
        "--index": "packages are taken from another index",
        "--index-url": "packages are taken from another index",
        "--extra-index-url": "packages are taken from another index",
    },
    "dnx": {
        "--source": "packages are taken from another source",
        "--add-source": "packages are taken from another source",
    },
}
_STEERING = re.compile(
    r"(?:npm_config_|uv_|pip_|nuget_|dotnet_|docker_|ld_|dyld_)|(?:node_options|path|pythonpath|pythonstartup|home)$",
    re.IGNORECASE,
)
"""Names of variables that say where programs take packages from, or what else they load."""
_ALL_FILES = re.compile(r"^/[/.]*:|(?:^|,)(?:src|source)=/[/.]*(?:,|$)")
_LOOPBACK = re.compile(r"http://(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/?]|$)")


def risks_of(upstream: Mapping[str, Any]) -> Iterator[str]:
    """Yield, in words, what a server is allowed by its command line, or why its address is not safe."""
    url = upstream.get("url")
    if isinstance(url, str):
        if url.startswith("http://") and _LOOPBACK.match(url) is None:
            yield "its address is not encrypted (http): others can read and change what is sent"
        return
    command = str(upstream.get("command"))
    words = [str(word) for word in upstream.get("args", ())]
    for option, meaning in _OPENING.get(command, {}).items():
        if any(_is_option(word, option) for word in words):
            yield f"{option}: {meaning}"
    for name in upstream.get("env", {}):
        if _STEERING.match(name):
            yield f"the variable {name} steers {command} itself, or any program"
    if command == "docker":
        yield from _of_folders(words)
        yield from _of_variables(words, upstream.get("env", {}))


def _is_option(word: str, option: str) -> bool:
    if len(option) == 2:  # its value may be in the same word
        return word.startswith(option)
    return word == option or word.startswith(f"{option}=")


def _of_variables(words: Sequence[str], env: Mapping[str, Any]) -> Iterator[str]:
    for option, word in pairwise(words):
        if option in ("-e", "--env") and "=" not in word and word not in env:
            yield f"the container gets the variable {word} of this machine"


def _of_folders(words: Sequence[str]) -> Iterator[str]:
    text = [word.removeprefix("--volume=").removeprefix("--mount=").removeprefix("-v") for word in words]
    if any("docker.sock" in word for word in text):
        yield "the container may start others: it gets Docker's own socket"
    if any(_ALL_FILES.search(word) for word in text):
        yield "the container gets all files of this machine"
    if any(word in ("--network=host", "--net=host") for word in words) or any(
        pair in (("--network", "host"), ("--net", "host")) for pair in pairwise(words)
    ):
        yield "the container uses the network as this machine does"
