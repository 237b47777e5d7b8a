"""Choosing the formulas for the model behind a host: by the model's name, or else by what the profile says."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from gateway.core.profiles.match_profile import names_of_model
from gateway.core.tokens.formula import TokenFormula


def formulas_for(
    formulas: Mapping[str, TokenFormula], families: Iterable[str], model: str | None = None
) -> tuple[TokenFormula, ...]:
    """Return the formula of the model if its name is known, or else those that the profile names, in its order.

    The longest pattern that matches the model's name is used. Empty if neither is known.
    """
    if model is not None and (found := _of_model(formulas, names_of_model(model))) is not None:
        return (found,)
    return tuple(formulas[family] for family in families if family in formulas)


def _of_model(formulas: Mapping[str, TokenFormula], names: tuple[str, ...]) -> TokenFormula | None:
    matching = (
        (len(glob), formula)
        for formula in formulas.values()
        for glob in formula.models
        if any(fnmatchcase(name, glob) for name in names)
    )
    return max(matching, key=lambda found: found[0], default=(0, None))[1]
