"""Loading the settings from the configuration file and the environment. Only this package reads either."""

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from gateway.config.documents import read_document
from gateway.config.expansion import expand
from gateway.config.find_config import FILE_VARIABLE, absolute_path, find_file
from gateway.config.fingerprint import fingerprint
from gateway.config.foreign import translate_document
from gateway.config.problems import Location, Problem, config_error
from gateway.config.schema import FILE_VERSION, Settings
from gateway.config.secret_sources import secret_sources
from gateway.config.setting_types import is_url
from gateway.config.token_hashes import hash_of
from gateway.config.validation import validate
from gateway.core.model.format_versions import newer_than
from gateway.core.model.json_values import as_object, is_dict, is_list, is_object
from gateway.errors import ConfigError

PYTHON_VARIABLE = "MCP_GATEWAY_PYTHON"
"""Defaults to the Python that runs the gateway, for upstreams that need packages installed beside it."""

TOKEN_VARIABLE = "MCP_GATEWAY_TOKEN"  # noqa: S105 - the variable's name, no token

_FOR_SERVING = ("http", "access", "model_proxy", "cluster")
"""The tables that say who may ask, and how the gateway is reached."""


@dataclass(frozen=True)
class LoadedSettings:
    """The settings and the file that they come from; without a file, the defaults."""

    settings: Settings
    path: Path | None
    reaches_upstreams: bool = True
    """False: the upstreams' tables may have references without a value, so none of them can be used."""
    seen: bytes | None = None
    """The file's fingerprint from before it was read: what is written meanwhile is a change."""


def load_settings(
    path: Path | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
    reaches_upstreams: bool = True,
    serves: bool = True,
    reads_secrets: bool = True,
) -> LoadedSettings:
    """Load the settings from `path`, or else $MCP_GATEWAY_CONFIG, ./mcp-gateway.toml, or the user's config folder.

    Values are expanded from `environ`; relative folders and commands are relative to the file. `cwd` is the base for
    relative paths to the file itself and for `./mcp-gateway.toml` (default: the working directory).
    `reaches_upstreams`: False if no upstream is going to be used. References in their tables that have no value here
    then stay as they are: what needs no server needs no server's secrets. `serves`: False if nobody is going to be
    served, so that the same holds for what says who may ask. `reads_secrets`: False if no file, keyring
    or command is to be asked for a secret; references to them stay as they are too.

    Raises:
        ConfigError: one line for each problem: file, dotted key, description, remedy. It never shows a value.
    """
    found = find_file(path, environ=environ, cwd=cwd)
    if found is None:
        return LoadedSettings(_with_token(Settings(), environ), None, reaches_upstreams)
    shown = found
    if cwd is not None and not found.is_absolute():
        found = cwd / found
    seen = fingerprint(found)
    try:
        document = read_document(found)
    except ConfigError as error:
        if path is None and FILE_VARIABLE in environ:
            raise ConfigError(str(error), remedy=f"the file is named by ${FILE_VARIABLE}") from None
        raise
    parts = (document, found, shown, environ)
    unused = (*(() if reaches_upstreams else ("upstreams",)), *(() if serves else _FOR_SERVING))
    settings = _settings(*parts, unused, reads_secrets=reads_secrets)
    return LoadedSettings(settings, found, reaches_upstreams, seen)


def _settings(
    document: Mapping[str, Any],
    file: Path,
    shown: Path,
    environ: Mapping[str, str],
    unused: Collection[str],
    *,
    reads_secrets: bool,
) -> Settings:
    def as_written(location: Location) -> Location:
        return location

    problems: tuple[Problem, ...] = ()
    read: set[str] = set()
    sources = secret_sources(file.parent, environ, read.add) if reads_secrets else None
    if file.suffix.lower() == ".json":
        sources = None  # what other programs write in this form means something else
        translation = translate_document(document)
        document, problems, as_written = translation.document, translation.problems, translation.written
    elif (newer := newer_than(FILE_VERSION, document.get("version"))) is not None:
        # Alone: what else seems wrong may be right for a newer gateway.
        raise config_error(str(shown), [Problem(("version",), newer, "update the gateway")])
    expanded, unset = expand(document, {PYTHON_VARIABLE: sys.executable, **environ}, sources)
    settings, invalid = validate(Settings, _anchored(expanded, file.parent, environ), renamed=as_written)
    if settings is not None:
        unset = tuple(one for one in unset if one.location[0] not in unused)
    problems += tuple(Problem(as_written(one.location), one.what, one.remedy) for one in unset)
    # References that could not be expanded are still in the document and may cause a second problem.
    reported = {problem.location for problem in problems}
    problems += tuple(problem for problem in invalid if problem.location not in reported)
    if settings is not None and settings.http.token is not None and not settings.http.token.strip():
        problems += (Problem(("http", "token"), "is empty", "leave it out, or give one that cannot be guessed"),)
    if settings is None or problems:
        raise config_error(str(shown), problems)
    settings = _with_token(_with_secrets(settings, expanded, read), environ)
    if unclear := (*_shared_tokens(settings), *_unbound_issuers(settings)):
        raise config_error(str(shown), unclear)
    return settings


def _with_secrets(settings: Settings, expanded: Mapping[str, Any], read: Collection[str]) -> Settings:
    """Note in the settings which secrets were read for them, and in each upstream's those that occur in its table."""
    tables = as_object(expanded.get("upstreams"))
    upstreams = {
        name: one.with_read_secrets(secret for secret in read if _occurs(secret, tables.get(name)))
        for name, one in settings.upstreams.items()
    }
    return settings.model_copy(update={"upstreams": upstreams}).with_read_secrets(read)


def _occurs(text: str, value: Any) -> bool:
    if is_object(value):
        return any(_occurs(text, item) for item in value.values())
    if is_list(value):
        return any(_occurs(text, item) for item in value)
    return isinstance(value, str) and text in value


def _with_token(settings: Settings, environ: Mapping[str, str]) -> Settings:
    token = environ.get(TOKEN_VARIABLE)
    if settings.http.token is not None or not token:
        return settings
    return settings.model_copy(update={"http": settings.http.model_copy(update={"token": token})})


def _shared_tokens(settings: Settings) -> tuple[Problem, ...]:
    """Return a problem for each token that a table before it has too: whose it is would be left to chance."""
    tokens: list[tuple[Location, str | None, str | None]] = [(("http", "token"), None, settings.http.token)]
    tokens += [(("access", "tokens", name), one.hash, one.token) for name, one in settings.access.tokens.items()]
    first: dict[str, Location] = {}
    problems: list[Problem] = []
    for location, hashed, token in tokens:
        if token is not None:
            hashed = hash_of(token)
        if hashed is not None and (before := first.setdefault(hashed, location)) is not location:
            what = f"is the same token as {'.'.join(map(str, before))}"
            problems.append(Problem(location, what, f"give each its own; ${TOKEN_VARIABLE} counts as http.token"))
    return tuple(problems)


def _unbound_issuers(settings: Settings) -> tuple[Problem, ...]:
    """Return a problem for each issuer whose tokens could be meant for anything: nothing says what the gateway is."""
    if settings.gateway.public_url is not None:
        return ()
    remedy = "give [gateway] public_url, or the audience that its tokens for this gateway have"
    return tuple(
        Problem(("access", "issuers", name, "audience"), "is missing", remedy)
        for name, issuer in settings.access.issuers.items()
        if not issuer.audience
    )


def _anchored(document: Mapping[str, Any], folder: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Make relative paths in the document relative to `folder`.

    These are every upstream's `cwd`, `files`, `openapi` (unless it is a URL), `replay`, `auth.assertion_file`, and
    `command` (if it is a path), the `folders` of `[content]`, the `database` of `[access.authorization_server]`, and
    the paths in `[http]`, `[files]`, `[audit]`, `[console]` and `[describe]`.
    """
    anchored = {**document, **_anchored_sections(document, folder, environ)}
    if isinstance(content := document.get("content"), dict):
        anchored["content"] = _anchored_list(cast("dict[str, Any]", content), "folders", folder, environ)
    if is_dict(http := document.get("http")):
        anchored["http"] = _anchored_paths(http, ("tls_certificate", "tls_key"), folder, environ)
    if isinstance(upstreams := document.get("upstreams"), dict):
        named = cast("dict[str, Any]", upstreams)
        anchored["upstreams"] = {name: _anchored_upstream(one, folder, environ) for name, one in named.items()}
    return anchored


def _anchored_paths(
    table: dict[str, Any], keys: Collection[str], folder: Path, environ: Mapping[str, str]
) -> dict[str, Any]:
    paths = {key: path for key in keys if isinstance(path := table.get(key), str)}
    return {**table, **{key: str(absolute_path(path, folder, environ)) for key, path in paths.items()}}


def _anchored_list(table: dict[str, Any], key: str, folder: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    if not is_list(paths := table.get(key)):
        return table
    return {**table, key: [str(absolute_path(one, folder, environ)) if isinstance(one, str) else one for one in paths]}


def _anchored_sections(document: Mapping[str, Any], folder: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    anchored: dict[str, Any] = {}
    describe, access = document.get("describe"), document.get("access")
    for section, key in (("files", "dir"), ("audit", "path"), ("console", "calls")):
        if is_dict(table := document.get(section)) and isinstance(path := table.get(key), str):
            anchored[section] = {**table, key: str(absolute_path(path, folder, environ))}
    if is_dict(access) and is_dict(server := access.get("authorization_server")):
        server = _anchored_paths(server, ("database",), folder, environ)
        anchored["access"] = {**access, "authorization_server": server}
    if is_dict(describe) and is_list(command := describe.get("command")) and command:
        program, *arguments = command
        if isinstance(program, str) and ("/" in program or os.sep in program):
            words = [str(absolute_path(program, folder, environ)), *arguments]
            anchored["describe"] = {**describe, "command": words}
    return anchored


def _anchored_upstream(upstream: Any, folder: Path, environ: Mapping[str, str]) -> Any:
    if not is_dict(upstream):
        return upstream
    anchored = dict(_anchored_list(upstream, "files", folder, environ))
    if isinstance(cwd := upstream.get("cwd"), str):
        anchored["cwd"] = str(absolute_path(cwd, folder, environ))
    command = upstream.get("command")
    if isinstance(command, str) and ("/" in command or os.sep in command):
        anchored["command"] = str(absolute_path(command, folder, environ))
    if isinstance(document := upstream.get("openapi"), str) and not is_url(document):
        anchored["openapi"] = str(absolute_path(document, folder, environ))
    if isinstance(recording := upstream.get("replay"), str):
        anchored["replay"] = str(absolute_path(recording, folder, environ))
    if is_dict(auth := upstream.get("auth")):
        anchored["auth"] = _anchored_paths(auth, ("assertion_file",), folder, environ)
    return anchored
