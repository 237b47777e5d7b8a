"""Which options of npx, uvx and `docker run` are followed by a value. Pure.

Before the package, a word that is not the value of an option would be run in the package's place.
"""

from collections.abc import Iterable, Mapping

_VALUED: Mapping[str, frozenset[str]] = {
    "npm": frozenset(
        {"-p", "--package", "-c", "--call", "-w", "--workspace", "--registry", "--userconfig", "--globalconfig"}
        | {"--prefix", "--cache", "--node-options", "--loglevel", "--shell", "--cafile", "--https-proxy", "--proxy"}
    ),
    "pypi": frozenset(
        {"--from", "-w", "--with", "--with-editable", "--with-requirements", "-i", "--index", "--index-url"}
        | {"--default-index", "--extra-index-url", "-f", "--find-links", "-p", "--python", "--env-file", "-c"}
        | {"--constraints", "--overrides", "--config-file", "--cache-dir", "--directory", "--project", "--prerelease"}
        | {"--resolution", "--exclude-newer", "--index-strategy", "--keyring-provider", "--link-mode", "--color"}
        | {"--python-preference", "--python-platform", "--torch-backend", "--allow-insecure-host"}
        | {"--refresh-package", "--reinstall-package", "-P", "--upgrade-package"}
    ),
}
_SWITCHES = frozenset(
    {"--detach", "--disable-content-trust", "--help", "--init", "--interactive", "--no-healthcheck"}
    | {"--oom-kill-disable", "--privileged", "--publish-all", "--quiet", "--read-only", "--rm", "--sig-proxy", "--tty"}
    | {"--use-api-socket"}
)
"""The options of `docker run` without a value; there are many more with one. Short ones may be written as one word."""
_SHORT_SWITCHES = frozenset("ditPq")


def stray_word(kind: str, words: Iterable[str]) -> str | None:
    """Return the first of the words before a package that is neither an option nor the value of one, if any."""
    is_value = False
    for word in words:
        if not is_value and not word.startswith("-"):
            return word
        is_value = not is_value and _wants_value(kind, word)
    return None


def _wants_value(kind: str, option: str) -> bool:
    if "=" in option:
        return False
    if kind in _VALUED:
        return option in _VALUED[kind]
    if option.startswith("--"):
        return option not in _SWITCHES
    # `-it` are two switches; what follows the first option with a value is that value: `-v/a:/b`.
    letters = option[1:].lstrip("".join(_SHORT_SWITCHES))
    return len(letters) == 1
