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
    },
    "npx": {
        "-c": "a shell runs what follows it",
        "--call": "a shell runs what follows it",
        "-p": "another package is installed with it",
        "--package": "another package is installed with it",
        "--registry": "packages are taken from another registry",
    },
    "uvx": {
        "--from": "the package that is installed is the one that follows it",
        "--with": "another package is installed with it",
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
        if any(word == option or word.startswith(f"{option}=") for word in words):
            yield f"{option}: {meaning}"
    for name in upstream.get("env", {}):
        if _STEERING.match(name):
            yield f"the variable {name} steers {command} itself, or any program"
    if command == "docker":
        yield from _of_folders(words)


def _of_folders(words: Sequence[str]) -> Iterator[str]:
    text = [word.removeprefix("--volume=").removeprefix("--mount=") for word in words]
    if any("docker.sock" in word for word in text):
        yield "the container may start others: it gets Docker's own socket"
    if any(word.startswith("/:") or "src=/," in word or "source=/," in word for word in text):
        yield "the container gets all files of this machine"
    if any(word in ("--network=host", "--net=host") for word in words) or any(
        pair in (("--network", "host"), ("--net", "host")) for pair in pairwise(words)
    ):
        yield "the container uses the network as this machine does"
