"""The catalogue: the tools and prompts of all upstreams as one list each, as one profile's host takes them. Pure."""

from gateway.core.catalogue.merging import Catalogue, Route, Selection, build
from gateway.core.catalogue.prefixes import OWN, PrefixRule
from gateway.core.catalogue.prompts import PromptCatalogue, PromptRoute, build_prompts
from gateway.core.model.texts import cut

__all__ = [
    "OWN",
    "Catalogue",
    "PrefixRule",
    "PromptCatalogue",
    "PromptRoute",
    "Route",
    "Selection",
    "build",
    "build_prompts",
    "cut",
]
