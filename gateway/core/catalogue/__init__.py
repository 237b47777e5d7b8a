"""The catalogue: the tools of all upstreams as one list, as one profile's host takes them. Pure."""

from gateway.core.catalogue.merging import OWN, Catalogue, PrefixRule, Route, Selection, build, cut

__all__ = ["OWN", "Catalogue", "PrefixRule", "Route", "Selection", "build", "cut"]
