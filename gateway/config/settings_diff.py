"""Comparing two versions of the settings: the differences, and which of them a running gateway can apply.

Only keys are named, never values, which may be secrets.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from pydantic import BaseModel

from gateway.config.audit_settings import AuditSettings
from gateway.config.overload_settings import OverloadSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.json_values import is_object

LIVE = frozenset(
    {
        *("gateway.prefix", "gateway.profile", "gateway.model", "gateway.instructions"),
        *("store.max_bytes", "store.max_bytes_per_owner", "store.expires", "store.timeout"),
        *(f"overload.{key}" for key in OverloadSettings.model_fields if key not in ("memory", "media_queue")),
        *(f"audit.{key}" for key in AuditSettings.model_fields if key not in ("path", "otlp")),
        *("access", "limits", "pins", "policy", "profiles", "registry", "shared", "tokens", "tool_search", "toolsets"),
        "upstreams",
    }
)
"""Sections and keys that a running gateway applies. Everything else is read once, at the start."""

FIXED = frozenset({"access.authorization_server"})
"""Keys of such sections that it does not: they too are read once, at the start."""

LIVE_OF_UPSTREAM = frozenset(
    {"accept", "tools", "timeout", "session_idle", "max_sessions", "read_only", "pins", "registry"}
)
"""Settings of an upstream that apply without reconnecting."""


OF_UPSTREAMS = ("added", "removed", "enabled", "disabled", "restarted", "adjusted")
"""The members of a `Difference` that name upstreams. Each is also the word for what happened to them."""


@dataclass(frozen=True)
class Difference:
    """The differences between two versions of the settings: upstreams by name, everything else by dotted key."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    """Upstreams that have to be reconnected."""
    adjusted: tuple[str, ...] = ()
    """Upstreams that stay connected, but are offered or called in another way."""
    applied: tuple[str, ...] = ()
    """Keys that a running gateway applies."""
    restart_needed: tuple[str, ...] = ()
    """Keys that take effect only at the next start."""

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


def compare(old: Settings, new: Settings) -> Difference:
    """Return what `new` changes."""
    keys = tuple(_keys(old, new))
    both = [name for name in new.upstreams if name in old.upstreams and new.upstreams[name] != old.upstreams[name]]
    switched = [name for name in both if new.upstreams[name].enabled != old.upstreams[name].enabled]
    changed = [name for name in both if name not in switched]
    restarted = tuple(name for name in changed if needs_restart(old.upstreams[name], new.upstreams[name]))
    return Difference(
        added=tuple(name for name in new.upstreams if name not in old.upstreams),
        removed=tuple(name for name in old.upstreams if name not in new.upstreams),
        enabled=tuple(name for name in switched if new.upstreams[name].enabled),
        disabled=tuple(name for name in switched if not new.upstreams[name].enabled),
        restarted=restarted,
        adjusted=tuple(name for name in changed if name not in restarted),
        applied=tuple(key for key in keys if _is_live(key)),
        restart_needed=tuple(key for key in keys if not _is_live(key)),
    )


def live_part(old: Settings, new: Settings) -> Settings:
    """Return the settings in force after a gateway started with `old` has applied what it can of `new`."""
    in_part = {key.partition(".")[0] for key in LIVE if "." in key}
    kept = {name: getattr(old, name) for name in Settings.model_fields if name not in LIVE}
    for name in in_part:
        before: BaseModel = getattr(old, name)
        after: BaseModel = getattr(new, name)
        fixed = [key for key in type(before).model_fields if f"{name}.{key}" not in LIVE]
        kept[name] = after.model_copy(update={key: getattr(before, key) for key in fixed})
    for name, _, key in (place.partition(".") for place in FIXED):
        kept[name] = getattr(new, name).model_copy(update={key: getattr(getattr(old, name), key)})
    # Also the secrets of sections that are kept, and of connections that still have the previous ones.
    return new.model_copy(update=kept).with_read_secrets(old.read_secrets | new.read_secrets)


def needs_restart(old: UpstreamSettings, new: UpstreamSettings) -> bool:
    """Whether an upstream has to be reconnected for the new settings."""
    return any(
        getattr(old, key) != getattr(new, key) for key in UpstreamSettings.model_fields if key not in LIVE_OF_UPSTREAM
    )


def _keys(old: Settings, new: Settings) -> Iterator[str]:
    """Yield the dotted keys that differ outside of upstreams: a table's own keys, and whole user profiles."""
    for section in Settings.model_fields:
        before, after = getattr(old, section), getattr(new, section)
        if section == "upstreams" or before == after:
            continue
        if is_object(before) and is_object(after):
            before, after = before, after
            names = {**before, **after}
            yield from (f"{section}.{name}" for name in names if before.get(name) != after.get(name))
        elif isinstance(before, BaseModel):
            fields = type(before).model_fields
            yield from (f"{section}.{key}" for key in fields if getattr(before, key) != getattr(after, key))
        else:
            yield section


def _is_live(key: str) -> bool:
    return key not in FIXED and (key in LIVE or key.partition(".")[0] in LIVE)
