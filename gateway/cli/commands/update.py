"""`mcp-gateway update`: bring servers that were added from the registry to their latest version."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.answer_questions import ask_for_answers, read_settings
from gateway.cli.ask_registry import ask_registry
from gateway.cli.command_context import ConfigFile
from gateway.cli.configuration_file import say_if_taken_over
from gateway.cli.exit_codes import DONE, FAILED, complain, refuse, refuse_to_guess
from gateway.cli.known_upstream import check_upstream
from gateway.cli.server_completion import upstream_names
from gateway.cli.terminal import remark, say
from gateway.config.mask_toml import masked_configuration
from gateway.core.registry.risks import risks_of
from gateway.errors import ConfigError, GatewayError
from gateway.hosts.config_files.configuration_file import ConfigurationFile
from gateway.hosts.config_files.register_gateway import unified
from gateway.hosts.config_files.starter_config import check_upstream as check_table
from gateway.hosts.config_files.upstream_edits import ConfigurationText

if TYPE_CHECKING:
    from gateway.registry.client import RegistryClient
    from gateway.registry.plan_update import UpdatePlan


def update(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Name of the server here. Default: all of the registry.",
            autocompletion=upstream_names,
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A value that only the new version asks for. Repeatable."),
    ] = None,
    config: ConfigFile = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what is newer, and change nothing.")] = False,
) -> int:
    """Update servers that were added from the registry; your own changes and comments stay.

    The difference is shown before it is written; a running gateway applies it.
    """
    file = ConfigurationFile.existing(config)
    chosen = _chosen(file, name)
    if not chosen:
        say("no server was added from the registry: `mcp-gateway add NAME` adds one of `mcp-gateway search WORDS`")
        return DONE
    found = ask_registry(config, lambda client: _plans(client, chosen))
    if isinstance(found, int):
        return found
    plans, failed = found
    if values and len(plans) != 1:
        refuse("--set is for one server: name it")
    text = file.text
    for plan in plans:
        text = _changed(text, plan, values or (), ask=not yes and not dry_run)
    if text.text == file.text.text:
        say("nothing is newer" if not failed else "nothing else is newer")
        return FAILED if failed else DONE
    say(_shown(file, text))
    if dry_run or not _agreed(len(plans), file, yes=yes):
        return FAILED if failed else DONE
    file.write(text)
    for plan in plans:
        say(f"{file.path}: {plan.name} is {plan.after.reference} now")
    say_if_taken_over(file)
    return FAILED if failed else DONE


def _chosen(file: ConfigurationFile, name: str | None) -> dict[str, Mapping[str, Any]]:
    from gateway.registry.plan_update import registered

    upstreams = file.text.upstreams()
    references = registered(upstreams)
    if name is not None:
        check_upstream(name, upstreams, where=str(file.path))
        if name not in references:
            remedy = "only those with `registry` in their table can be updated"
            raise ConfigError(f"{name} was not added from the registry", where=str(file.path), remedy=remedy)
    return {each: upstreams[each] for each in references if name in (None, each)}


async def _plans(client: "RegistryClient", chosen: Mapping[str, Mapping[str, Any]]) -> "tuple[list[UpdatePlan], bool]":
    """Return the updates of upstreams, and whether one could not be looked for."""
    from gateway.registry.plan_update import plan_update

    plans: list[UpdatePlan] = []
    failed = False
    for name, table in chosen.items():
        try:
            plan = await plan_update(client, name, table)
        except GatewayError as error:
            complain(f"{name}: {error.message}", remedy=error.remedy)
            failed = True
            continue
        if plan is not None:
            plans.append(plan)
    return plans, failed


def _changed(text: ConfigurationText, plan: "UpdatePlan", values: Sequence[str], *, ask: bool) -> ConfigurationText:
    """Return the configuration with one update in it; say what it is."""
    from gateway.registry.plan_add import check_complete, read_answers

    say(f"{plan.name}: {plan.before.version} -> {plan.after.version}")
    given = read_settings(values)
    answers = read_answers(plan.asking, given)
    if ask:
        answers = ask_for_answers(plan.questions, answers, [each for each, _ in given])
    check_complete(plan.asking, answers)
    merged = plan.merged(answers)
    for place in merged.conflicts:
        remark(f"{plan.name}: {place} has changed in the registry and here: yours stays, so look at it")
    before = set(risks_of(plan.mine))
    for risk in risks_of(merged.upstream):
        if risk not in before:
            remark(f"careful: {plan.name}: {risk}")
    check_table(plan.name, merged.upstream)
    return text.with_changes(plan.name, merged.upstream)


def _shown(file: ConfigurationFile, text: ConfigurationText) -> str:
    """Return the difference, with secrets masked."""
    return unified(masked_configuration(file.text.text), masked_configuration(text.text), file.path)


def _agreed(count: int, file: ConfigurationFile, *, yes: bool) -> bool:
    if yes:
        return True
    if not sys.stdin.isatty():
        refuse_to_guess(": --yes writes, --dry-run only shows")
    return typer.confirm(f"Write {'it' if count == 1 else 'them'} to {file.path}?", default=True)
