"""Shell completion of the names of servers and tools, from the configuration and from the lists that are kept.

Modules are imported only when a shell asks, so that commands do not start more slowly.
"""

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gateway.cli.completion import beginning

if TYPE_CHECKING:
    from gateway.config.schema import Settings
    from gateway.core.model.wire import WireObject


def upstream_names(context: typer.Context, incomplete: str) -> list[str]:
    """The upstreams that begin like this, in the file that the command would read; none if it cannot be read."""
    return beginning(incomplete, _found(lambda: _upstreams_in_file(_config(context))))


def tool_names(context: typer.Context, incomplete: str) -> list[str]:
    """The tools that begin like this, as `call` names them, of the upstreams whose lists are kept.

    No server is started and no secret is read: upstreams whose settings have one, and those whose lists are those of a
    login, have none here.
    """
    return beginning(incomplete, _found(lambda: _tools(_config(context), context.params.get("profile") or ())))


def _found(look: Callable[[], list[str]]) -> list[str]:
    """What is found, or nothing: whatever fails says nothing into the line that is being typed."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        return look()
    except (Exception, SystemExit):  # anything can be wrong with a file, and nobody has asked for it yet
        return []
    finally:
        logging.disable(before)


def _config(context: typer.Context) -> Path | None:
    """The file named by `--config` on the line so far."""
    named = context.params.get("config")
    return None if named is None else Path(named)


def _upstreams_in_file(path: Path | None) -> list[str]:
    """Read no more than the names: the file may be wrong elsewhere, and that is no reason to complete nothing."""
    from gateway.config.documents import read_document
    from gateway.config.find_config import find_file
    from gateway.config.foreign import translate_document
    from gateway.core.model.json_values import as_object

    found = find_file(path, environ=os.environ)
    if found is None:
        return []
    document = read_document(found)
    if found.suffix.lower() == ".json":
        document = translate_document(document).document
    return [*as_object(document.get("upstreams"))]


def _tools(config: Path | None, profiles: Iterable[str]) -> list[str]:
    from gateway.cli.command_context import chosen_profiles, the_profiles, with_raw_profile
    from gateway.config.builtin_profiles import load_profiles
    from gateway.config.load_settings import load_settings
    from gateway.core.model.revisions import REVISIONS
    from gateway.core.tools.catalogue import build

    settings = load_settings(config, reaches_upstreams=False, reads_secrets=False).settings
    names_of = next(iter(chosen_profiles(settings, the_profiles([*profiles]), REVISIONS[-1]).values()))
    raw, caller = with_raw_profile(settings, names_of)
    profile = load_profiles(raw)[caller.profile or ""]
    selections = {name: upstream.tools for name, upstream in settings.upstreams.items()}
    catalogue = build(_kept_tools(settings), selections, settings.gateway.prefix, profile, settings.gateway.name)
    return [tool["name"] for tool in catalogue.tools]


def _kept_tools(settings: "Settings") -> "dict[str, tuple[WireObject, ...]]":
    """The tools of each upstream that is enabled, as it last listed them to everybody."""
    from gateway.config.find_config import cache_folder
    from gateway.upstream import Catalogues

    folder = cache_folder(os.environ)
    if folder is None:
        return {}
    catalogues = Catalogues(folder / "catalogues")
    enabled = {name: upstream for name, upstream in settings.upstreams.items() if upstream.enabled}
    kept = {name: catalogues.recall(upstream) for name, upstream in enabled.items()}
    return {name: lists.tools for name, lists in kept.items() if lists is not None and not lists.is_personal}
