"""The catalogue: the tools and prompts of all upstreams merged into one list each, for one host profile. Pure."""

from gateway.core.model.texts import cut
from gateway.core.tools.catalogue.catalogue import Catalogue, Route, Selection, WithheldTool
from gateway.core.tools.catalogue.merge_tools import build
from gateway.core.tools.catalogue.prefixes import OWN, PrefixRule
from gateway.core.tools.catalogue.prompts import PromptCatalogue, PromptRoute, build_prompts

__all__ = [
    "OWN",
    "Catalogue",
    "PrefixRule",
    "PromptCatalogue",
    "PromptRoute",
    "Route",
    "Selection",
    "WithheldTool",
    "build",
    "build_prompts",
    "cut",
]
