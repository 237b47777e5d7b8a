"""The forms of a result that a host has chosen for one call (SEP-3279): checked before it, and made after it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.core.model.apps_extension import declares
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import is_object, objects_in
from gateway.core.model.wire import WireObject
from gateway.core.results.output_variants import (
    OUTPUTS,
    REQUESTED,
    Selector,
    chosen_outputs,
    declared_variants,
    outputs_of,
)
from gateway.core.tools.catalogue import Catalogue
from gateway.errors import OutputUnavailable
from gateway.routing.check_arguments import ArgumentChecks


@dataclass(frozen=True)
class ChosenOutputs:
    """The forms that a host has chosen for a call of `name`, each with the schema that it has, if any."""

    name: str
    chosen: tuple[Selector, ...]
    schemas: Mapping[Selector, WireObject]

    def added(
        self, shaped: dict[str, Any], raw: WireObject, checks: ArgumentChecks, most_blocks: int
    ) -> dict[str, Any]:
        """Return the result of the call with its outputs. `shaped` is what the host's model gets of `raw`.

        Raises:
            OutputUnavailable: a chosen form cannot be made of it, or does not fit the schema that the tool declares.
        """
        outputs = outputs_of(shaped, raw, self.chosen, most_blocks)
        for output in outputs if raw.get("isError") is not True else ():
            form = Selector(output["audience"], output["format"])
            if checks.mistakes(self.name, self.schemas.get(form), output.get("structuredContent")) is not None:
                raise OutputUnavailable(f"the tool's result does not fit the schema that it declares for {form}")
        return {**shaped, OUTPUTS: outputs}


def outputs_chosen(params: WireObject, name: str, catalogue: Catalogue, caller: Caller) -> ChosenOutputs | None:
    """Return the forms that a call asks for; None if its host is of a revision in which none are chosen.

    Raises:
        InvalidRequest: they are malformed, or the tool does not declare them.
    """
    if not caller.chooses_outputs:
        return None
    tool: WireObject = next((tool for tool in catalogue.tools if tool["name"] == name), {"name": name})
    variants = declared_variants(tool, shows_pages=declares(caller.capabilities))
    chosen = chosen_outputs(params.get(REQUESTED), variants)
    schemas = {
        Selector(each["audience"], each["format"]): each["schema"]
        for each in objects_in(variants)
        if is_object(each.get("schema"))
    }
    return ChosenOutputs(name, chosen, schemas)


def without_outputs(raw: WireObject, chosen: ChosenOutputs | None) -> WireObject:
    """Return an upstream's result as it is shaped: without its outputs, and for a host that chooses, without data."""
    if OUTPUTS not in raw:
        return raw
    dropped = (OUTPUTS,) if chosen is None else (OUTPUTS, "structuredContent")
    return {key: value for key, value in raw.items() if key not in dropped}
