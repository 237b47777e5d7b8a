"""The ways to run a server of a registry: its packages (npm, PyPI, OCI, NuGet) and its remotes (URLs).

Each becomes the table of an upstream. The exact version is part of it, never `latest` or a range, and the program is
the usual one for the kind of package: an entry cannot name another.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_object, as_text, objects_in
from gateway.core.registry.entry import RegistryEntry
from gateway.core.registry.inputs import (
    Answers,
    Question,
    Questions,
    Template,
    UnusableEntry,
    filled,
    literal,
    turns,
)
from gateway.core.registry.runtime_options import stray_word

URL = "url"
KINDS = ("npm", "pypi", "oci", "nuget", "mcpb", URL)

_NPM = re.compile(r"(?:@[a-z0-9][a-z0-9._~-]{0,213}/)?[A-Za-z0-9][A-Za-z0-9._~-]{0,213}")
_PYPI = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,213}(?:\[[A-Za-z0-9._,-]{1,200}\])?")
_NUGET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,213}")
_IMAGE = re.compile(
    r"[a-z0-9][a-z0-9._/:-]{0,400}?(?P<tag>:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?P<digest>@sha256:[0-9a-f]{64})?"
)
_VERSION = re.compile(r"v?[0-9][A-Za-z0-9.+_-]{0,254}")
_WHOLE_VERSION = re.compile(r"v?[0-9]{1,20}\.[0-9]{1,20}\.[0-9]{1,20}(?:[+-][A-Za-z0-9.+-]{1,200})?")
"""For npm, to which a version of fewer numbers is a range."""
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_RANGE = re.compile(r"(?:^|\.)[xX](?:\.|$)")
_SHA256 = re.compile(r"[a-f0-9]{64}")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_ADDRESS = re.compile(r"https?://[^\s/?#@]+(?:[/?][^\s#]*)?")
_MOST = 100

_USUAL_HOSTS: Mapping[str, Sequence[Sequence[str]]] = {
    "npm": (("registry", "npmjs", "org"),),
    "pypi": (("pypi", "org"),),
    "nuget": (("api", "nuget", "org"),),
    "oci": (("docker", "io"), ("registry-1", "docker", "io"), ("index", "docker", "io")),
}
"""The hosts, by their labels, from which the programs take packages anyway."""


class Argument(NamedTuple):
    """Words of a command line: `flag` ("" for none) and a text, filled once or for each answer."""

    flag: str
    text: Template
    is_repeated: bool = False
    is_flag_alone: bool = False

    def words(self, answers: Answers) -> Iterator[str]:
        """Yield the words; none if an answer is missing."""
        if self.is_flag_alone:
            yield self.flag
            return
        for turn in range(turns(self.text, answers) if self.is_repeated else 1):
            text = filled(self.text, answers, turn)
            if text is None:
                return
            if self.flag.endswith("="):
                yield self.flag + text
                continue
            yield from filter(None, (self.flag, text)) if self.flag else (text,)

    def first_words(self) -> Iterator[str]:
        """Yield the words as far as the entry fixes them: of a text that begins with an answer, `{}`."""
        if self.flag:
            yield self.flag
        if self.text and not self.is_flag_alone and not self.flag.endswith("="):
            yield self.text[0] if isinstance(self.text[0], str) else "{}"


@dataclass(frozen=True)
class Way:
    """One way to run a server. `obstacle`: why the gateway cannot, if so; `origin` says where the code comes from."""

    kind: str
    identifier: str
    origin: str
    obstacle: str | None = None
    digest: str | None = None
    questions: tuple[Question, ...] = ()
    command: str = ""
    args: tuple[Argument, ...] = ()
    env: Mapping[str, Template] | None = None
    url: Template = ()
    transport: str = ""
    headers: Mapping[str, Template] | None = None

    @property
    def runs_with(self) -> str:
        """The program that runs it, or the kind of address."""
        return self.command or (URL if self.kind == URL else self.kind)

    def upstream(self, answers: Answers, reference: str) -> dict[str, Any]:
        """Return the table of the upstream; what depends on a missing answer is left out of it.

        Raises:
            UnusableEntry: the URL is not one with these answers.
        """
        registry = {"registry": reference}
        if self.kind == URL:
            url = filled(self.url, answers)
            if url is None or not _ADDRESS.fullmatch(url):
                raise UnusableEntry("with these values its address is not a URL")
            headers = _filled(self.headers or {}, answers)
            return {"url": url, "transport": self.transport, **({"headers": headers} if headers else {}), **registry}
        env = _filled(self.env or {}, answers)
        args: list[str] = []
        for argument in self.args:
            if argument is _ENVIRONMENT:
                args += [word for name in env for word in ("-e", name)]
            else:
                args += argument.words(answers)
        return {"command": self.command, "args": args, **({"env": env} if env else {}), **registry}


_ENVIRONMENT = Argument("", ())
"""The place of the options that hand the environment to a container."""


def ways_of(entry: RegistryEntry) -> list[Way]:
    """Return all ways to run a server: packages first, in the order of the entry."""
    packages = [_package(package) for package in entry.packages]
    return [*packages, *(_remote(remote) for remote in entry.remotes)]


def _filled(templates: Mapping[str, Template], answers: Answers) -> dict[str, str]:
    texts = {name: filled(template, answers) for name, template in templates.items()}
    return {name: text for name, text in texts.items() if text is not None}


def _package(package: Mapping[str, Any]) -> Way:
    kind = (as_text(package.get("registryType")) or "").lower()
    identifier, version = as_text(package.get("identifier")) or "", as_text(package.get("version")) or ""
    digest = as_text(package.get("fileSha256")) or as_text(package.get("file_sha256"))
    base = (as_text(package.get("registryBaseUrl")) or "").rstrip("/")
    host = base.partition("://")[2].partition("/")[0].lower().split(".")
    there = f" from {base}" if base and tuple(host) not in _USUAL_HOSTS.get(kind, ()) else ""
    origin = f"{kind or 'unknown'} package {identifier}{f' {version}' if version else ''}{there}"
    way = Way(kind, identifier, origin, digest=digest)
    try:
        return _runnable(package, way, version, base if there else "")
    except UnusableEntry as error:
        return Way(kind, identifier, origin, obstacle=str(error), digest=digest)


def _runnable(package: Mapping[str, Any], way: Way, version: str, base: str) -> Way:
    if way.kind == "mcpb":
        proof = f" (SHA-256 {way.digest})" if way.digest and _SHA256.fullmatch(way.digest) else ""
        raise UnusableEntry(f"it is a bundle to be opened by a desktop program{proof}, which the gateway does not run")
    if way.kind not in _COMMANDS:
        raise UnusableEntry(f"the gateway runs no packages of the kind {way.kind or 'without a name'!r}")
    transport = as_text(as_object(package.get("transport")).get("type")) or "stdio"
    if transport != "stdio":
        raise UnusableEntry(
            f"it speaks {literal(transport)}, so somebody has to start it: then add its URL to the gateway"
        )
    if base and not _ADDRESS.fullmatch(base):
        raise UnusableEntry("the address of its package registry is not a URL")
    questions = Questions()
    own = [_argument(one, questions, number) for number, one in _numbered(package, "runtimeArguments")]
    env = {
        _checked(one, _VARIABLE_NAME, "variable"): questions.template(one, str(one.get("name")))
        for one in objects_in(package.get("environmentVariables"))[:_MOST]
    }
    given = [_argument(one, questions, number) for number, one in _numbered(package, "packageArguments")]
    command, arguments = _COMMANDS[way.kind](_Package(way.identifier, version, base, own, given))
    asked = tuple(questions.known.values())
    return Way(way.kind, way.identifier, way.origin, None, way.digest, asked, command, tuple(arguments), env)


def _numbered(package: Mapping[str, Any], key: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return enumerate(objects_in(package.get(key))[:_MOST], 1)


def _argument(given: Mapping[str, Any], questions: Questions, number: int) -> Argument:
    repeated = given.get("isRepeated") is True
    if given.get("type") != "named":
        name = as_text(given.get("valueHint")) or f"argument-{number}"
        return Argument("", questions.template(given, name, repeated=repeated), repeated)
    flag = literal(as_text(given.get("name")) or "")
    if not flag.strip("-"):
        raise UnusableEntry("one of its arguments has no name")
    if given.get("value") == "":
        return Argument(flag, (), is_flag_alone=True)
    return Argument(flag, questions.template(given, flag.strip("-="), repeated=repeated), repeated)


def _checked(given: Mapping[str, Any], form: re.Pattern[str], what: str) -> str:
    name = as_text(given.get("name")) or ""
    if not form.fullmatch(name):
        raise UnusableEntry(f"one of its {what}s has a name that is not one")
    return name


class _Package(NamedTuple):
    """What a command line is made of."""

    identifier: str
    version: str
    base: str
    own: Sequence[Argument]
    given: Sequence[Argument]

    def exact(self, form: re.Pattern[str], version: re.Pattern[str] = _VERSION) -> str:
        """Return the identifier if it is one, and its version is exact."""
        if not form.fullmatch(self.identifier):
            raise UnusableEntry("the name of its package is not one")
        if not version.fullmatch(self.version) or _RANGE.search(self.version):
            raise UnusableEntry("it names no exact version of its package")
        return self.identifier

    def without(self, *usual: str) -> list[Argument]:
        """Return the runtime's arguments without those that are there anyway."""
        names = {self.identifier, f"{self.identifier}@{self.version}", f"{self.identifier}=={self.version}", *usual}
        return [one for one in self.own if not (_fixed(one) in names or (one.is_flag_alone and one.flag in names))]

    def before(self, kind: str, *usual: str) -> list[Argument]:
        """Return the same for arguments that stand before the package, where another word would be run in its place."""
        own = self.without(*usual)
        stray = stray_word(kind, (word for argument in own for word in argument.first_words()))
        if stray is not None:
            raise UnusableEntry(f"its arguments would run something else than its package: {plain(stray, 100)!r}")
        return own


def _fixed(argument: Argument) -> str | None:
    """Return the word of an argument that is nothing but one fixed word."""
    only = argument.text[0] if len(argument.text) == 1 and not argument.flag else None
    if only is None and argument.flag and _is_switch(argument):
        return argument.flag
    return only if isinstance(only, str) else None


def _is_switch(argument: Argument) -> bool:
    return argument.is_flag_alone or (len(argument.text) == 1 and argument.text[0] == "true")


def _words(*words: str) -> list[Argument]:
    return [Argument("", (word,)) for word in words]


def _npx(package: _Package) -> tuple[str, list[Argument]]:
    name = package.exact(_NPM, _WHOLE_VERSION)
    base = _words(f"--registry={literal(package.base)}") if package.base else []
    own = [*_words("-y"), *base, *package.before("npm", "-y", "--yes")]
    return "npx", [*own, *_words(f"{name}@{package.version}"), *package.given]


def _uvx(package: _Package) -> tuple[str, list[Argument]]:
    name = package.exact(_PYPI)
    base = _words(f"--default-index={literal(package.base)}") if package.base else []
    own = package.before("pypi")
    is_named = any(argument.flag == "--from" for argument in own)
    return "uvx", [*base, *own, *_words(name if is_named else f"{name}=={package.version}"), *package.given]


def _dnx(package: _Package) -> tuple[str, list[Argument]]:
    name = package.exact(_NUGET)
    base = _words("--source", literal(package.base)) if package.base else []
    end = [*_words("--"), *package.given] if package.given else []
    own = [*base, *package.without("-y", "--yes")]
    return "dnx", [*_words(f"{name}@{package.version}", "--yes"), *own, *end]


def _docker(package: _Package) -> tuple[str, list[Argument]]:
    host = package.base.partition("://")[2]
    name = package.identifier
    image = f"{host}/{name}" if host and not name.startswith(f"{host}/") else name
    found = _IMAGE.fullmatch(image)
    if found is None:
        raise UnusableEntry("the name of its image is not one")
    if found["digest"] is None and (found["tag"] is None or "/" in found["tag"]):
        if not _TAG.fullmatch(package.version):
            raise UnusableEntry("it names no exact version of its image")
        image = f"{image}:{package.version}"
    if image.endswith(":latest"):
        raise UnusableEntry("it names no exact version of its image")
    own = package.before("oci", "run", "-i", "--interactive", "--rm")
    return "docker", [*_words("run", "-i", "--rm"), *own, _ENVIRONMENT, *_words(image), *package.given]


_COMMANDS: Mapping[str, Callable[[_Package], tuple[str, list[Argument]]]] = {
    "npm": _npx,
    "pypi": _uvx,
    "nuget": _dnx,
    "oci": _docker,
}


def _remote(remote: Mapping[str, Any]) -> Way:
    url, kind = as_text(remote.get("url")) or "", as_text(remote.get("type")) or ""
    try:
        transport = {"streamable-http": "http", "sse": "sse"}.get(kind)
        if transport is None:
            raise UnusableEntry(f"the gateway knows no remote of the kind {kind!r}")
        questions = Questions()
        template = questions.url(url, as_object(remote.get("variables")))
        if not _ADDRESS.fullmatch("".join(part if isinstance(part, str) else "x" for part in template)):
            raise UnusableEntry("its address is not a URL without a user and a fragment")
        headers = {
            _checked(one, _HEADER_NAME, "header"): questions.template(one, str(one.get("name")))
            for one in objects_in(remote.get("headers"))[:_MOST]
        }
        asked = tuple(questions.known.values())
        return Way(
            URL, url, f"the server at {url}", questions=asked, url=template, transport=transport, headers=headers
        )
    except UnusableEntry as error:
        return Way(URL, url, f"the server at {url}", obstacle=str(error))
