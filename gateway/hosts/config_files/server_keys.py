"""The keys of a server in hosts' configurations: what is read, what is the host's own business, and what they mean."""

from collections.abc import Mapping

TRANSPORTS: Mapping[str, str | None] = {
    "stdio": None,
    "local": None,
    "custom": None,
    "remote": "auto",
    "auto": "auto",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "streamable": "http",
    "sse": "sse",
}
"""What hosts call a transport: ours, or None for a program; `auto` is to find out."""

READ = frozenset(
    [
        "command",
        "cmd",
        "args",
        "env",
        "envs",
        "env_keys",
        "environment",
        "env_vars",
        "cwd",
        "workingDirectory",
        "url",
        "uri",
        "serverUrl",
        "httpUrl",
        "type",
        "transport",
        "transportType",
        "headers",
        "http_headers",
        "env_http_headers",
        "bearer_token_env_var",
        "bearerTokenEnvVar",
        "disabled",
        "enabled",
        "timeout",
        "tool_timeout_sec",
        "startup_timeout_sec",
        "connectTimeout",
        "connect_timeout",
        "connectionTimeoutMs",
        "requestTimeoutMs",
        "startupTimeoutMs",
        "toolTimeoutMs",
        "includeTools",
        "excludeTools",
        "enabled_tools",
        "disabled_tools",
        "disabledTools",
        "enabledTools",
        "available_tools",
        "tools",
        "toolFilter",
    ]
)
"""Keys that are carried over."""

OF_THE_HOST = frozenset(
    [
        "autoApprove",
        "alwaysAllow",
        "trust",
        "description",
        "name",
        "title",
        "icon",
        "iconUrl",
        "gallery",
        "version",
        "source",
        "dev",
        "required",
        "oauthProxy",
        "default_tools_approval_mode",
        "bundled",
        "display_name",
        "supportsParallelToolCalls",
        "supports_parallel_tool_calls",
        "watchPaths",
    ]
)
"""Keys for the host itself, about what it asks or shows its user: they mean nothing behind the gateway."""

BUILT_IN = frozenset({"builtin", "platform", "frontend", "inline_python"})
"""Types of extensions that are parts of Goose."""

TIMEOUTS: Mapping[str, tuple[str, float]] = {
    "tool_timeout_sec": ("call", 1.0),
    "toolTimeoutMs": ("call", 0.001),
    "requestTimeoutMs": ("call", 0.001),
    "startup_timeout_sec": ("start", 1.0),
    "connectTimeout": ("start", 1.0),
    "connect_timeout": ("start", 1.0),
    "startupTimeoutMs": ("start", 0.001),
    "connectionTimeoutMs": ("start", 0.001),
}
"""Keys of time limits: the limit of ours, and the seconds of one unit."""

LOGIN = frozenset(["oauth", "auth", "authProviderType", "oauth_resource", "oauth_client_id", "scopes"])
"""Keys with which a host logs in (OAuth) to a server at a url.

Claude Code, Gemini CLI and opencode write `oauth`, Cursor `auth`, Gemini CLI `authProviderType` too, Codex the others.
"""
