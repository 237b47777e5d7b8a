"""The environment of a child process: only what it needs to run and to reach the network.

Besides the variables that every program needs, it has those for access to the network: without them, nothing can be
installed behind a company's proxy. A proxy URL with a password is not passed on, since every server would get it.
"""

import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

from gateway.system import gateway_chain

_POSIX = frozenset(
    {
        "PATH",  # to find interpreters and programs
        "HOME",  # caches and settings of npx, uvx, browsers
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "LANG",  # the encoding of its output; see LC_* below
        "TMPDIR",
        "TZ",
        gateway_chain.VARIABLE,  # for a gateway behind this one
    }
)

_WINDOWS = frozenset(
    {
        "ALLUSERSPROFILE",
        "APPDATA",
        "COMMONPROGRAMFILES",
        "COMMONPROGRAMFILES(X86)",
        "COMMONPROGRAMW6432",
        "COMPUTERNAME",
        "COMSPEC",  # starts .cmd and .bat files
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "NUMBER_OF_PROCESSORS",
        "OS",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "PROGRAMFILES(X86)",
        "PROGRAMW6432",
        "PUBLIC",
        "SYSTEMDRIVE",
        "SYSTEMROOT",  # sockets do not work without it
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
        "WINDIR",
        gateway_chain.VARIABLE,
    }
)

_CERTIFICATES = frozenset(
    {
        "NODE_EXTRA_CA_CERTS",  # Node.js and npm: https://nodejs.org/api/cli.html#node_extra_ca_certsfile
        "NODE_USE_SYSTEM_CA",
        "NPM_CONFIG_CAFILE",  # npm, in any case: `npm help config`, cafile
        "SSL_CERT_FILE",  # OpenSSL, Go, uv: https://docs.astral.sh/uv/concepts/authentication/certificates
        "SSL_CERT_DIR",
        "UV_NATIVE_TLS",
        "UV_SYSTEM_CERTS",
        "PIP_CERT",  # pip and pipx: https://pip.pypa.io/en/stable/topics/https-certificates
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "DENO_CERT",  # https://docs.deno.com/runtime/reference/env_variables
        "DENO_TLS_CA_STORE",
    }
)
"""Variables with files and folders of private certificate authorities, and whether to trust the system's."""

_PROXIES = frozenset(
    {
        "ALL_PROXY",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NPM_CONFIG_HTTPS_PROXY",
        "NPM_CONFIG_NOPROXY",
        "NPM_CONFIG_PROXY",
        "NO_PROXY",
        "NODE_USE_ENV_PROXY",  # https://nodejs.org/en/learn/http/enterprise-network-configuration
    }
)

_CACHES = frozenset(
    {
        "NPM_CONFIG_CACHE",  # `npm help config`, cache
        "UV_CACHE_DIR",  # https://docs.astral.sh/uv/concepts/cache
        "DENO_DIR",
        "BUN_INSTALL_CACHE_DIR",
    }
)
"""Variables with the folders in which launchers keep packages: elsewhere, they would install everything again."""

_NETWORK = _CERTIFICATES | _PROXIES | _CACHES
"""Names are matched in any case: programs read `https_proxy` as well as `HTTPS_PROXY`, on every system."""

HELD_BACK = 'it contains a password; to pass it on, set env = { HTTPS_PROXY = "${HTTPS_PROXY}" } of the upstream'


def environment(
    given: Mapping[str, str], inherited: Mapping[str, str], *, platform: str = sys.platform
) -> dict[str, str]:
    """Return the environment of a child: the variables in its settings, over the few taken from `inherited`."""
    windows = platform == "win32"
    needed = _WINDOWS if windows else _POSIX
    # On Windows `Path` and `PATH` are one variable: a child must not get both.
    replaced = {name.upper() for name in given} if windows else given.keys()
    kept = {
        name: value
        for name, value in inherited.items()
        # A value that begins with "()" is a shell function, which no server needs and some shells would run.
        if ((name.upper() if windows else name) in needed or name.startswith("LC_"))
        and not value.startswith("()")
        and (name.upper() if windows else name) not in replaced
    }
    network = {name: value for name, value in _network(given, inherited).items() if not has_password(value)}
    return {**kept, **network, **given}


def held_back(given: Mapping[str, str], inherited: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that are not passed on because they contain a password."""
    return sorted(name for name, value in _network(given, inherited).items() if has_password(value))


def has_password(value: str) -> bool:
    """Whether a proxy's URL has credentials, as in `http://name:password@proxy:3128`, also without the scheme."""
    try:
        return "@" in urlsplit(value if "//" in value else f"//{value}").netloc
    except ValueError:  # not a URL: it may contain anything
        return "@" in value


def _network(given: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    # A given variable replaces an inherited one in any case: most programs prefer the lower-case one.
    replaced = {name.upper() for name in given}
    return {
        name: value
        for name, value in inherited.items()
        if name.upper() in _NETWORK and name.upper() not in replaced and not value.startswith("()")
    }
