"""The paper's claims, each with what a study measured and whether it holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mixedals.experiments.results import Curve, Difference, difference, differences

HOLDS, FAILS, UNSURE = "holds", "fails", "can't be told"
EQUAL = 0.002
"""A test AUC that is lower by less than this is as good as equal."""

_PROJECTED = ("projected", "sampled", "projected-wide", "sampled-wide")


@dataclass(frozen=True)
class Claim:
    """A claim.

    Attributes
    ----------
    text
        What the paper says.
    measured
        What the study measured: differences of test AUC, with twice their standard error.
    verdict
        ``HOLDS`` or ``FAILS``, where that is clear by two standard errors; else ``UNSURE``.
    """

    text: str
    measured: str
    verdict: str


def claims(curves: Mapping[str, Curve]) -> list[Claim]:
    """The paper's claims about those of its arms that the study has."""
    plain, padded = curves.get("plain"), curves.get("padded")
    out = []
    projected = [curves[name] for name in _PROJECTED if name in curves]
    for arm in projected:
        if plain is not None:
            found = differences(arm, plain)
            out.append(_claim(f"{arm.title} is above plain at every size", found, len(found)))
    for arm in projected:
        if padded is not None:
            found = differences(arm, padded)
            most = len(found) // 2 + 1
            out.append(_claim(f"{arm.title} is above padded at most sizes", found, most))
    if plain is not None and padded is not None:
        out.append(_at_least_equal(differences(padded, plain)))
    if plain is not None:
        out += [_largest(arm, plain) for arm in projected]
    compared = [
        of
        for arm in projected
        for lower in (plain, padded)
        if lower is not None
        for of in differences(arm, lower)
    ]
    if compared:
        out.append(_rmse_agrees(compared))
    return out


def _claim(text: str, found: Sequence[Difference], needed: int) -> Claim:
    """A claim that needs so many models to be above."""
    if not found:
        verdict = UNSURE
    elif sum(of.is_above for of in found) >= needed:
        verdict = HOLDS
    else:
        verdict = FAILS if sum(not of.is_below for of in found) < needed else UNSURE
    return Claim(_sentence(text), _shown(found), verdict)


def _at_least_equal(found: Sequence[Difference]) -> Claim:
    text = "padded at least equals plain (above on MovieLens 25M, equal on Netflix)"
    if found and all(of.auc - 2 * of.error > -EQUAL for of in found):
        verdict = HOLDS
    else:
        verdict = FAILS if any(of.is_below for of in found) else UNSURE
    return Claim(_sentence(text), _shown(found), verdict)


def _largest(arm: Curve, plain: Curve) -> Claim:
    upper, lower = arm.largest, plain.largest
    found = difference(upper, lower)
    fewer = 1 - upper.n_parameters / lower.n_parameters
    text = (
        f"{arm.title}, the largest model: above the largest plain one, with about 35 % fewer "
        "parameters"
    )
    claim = _claim(text, [found], 1)
    return Claim(claim.text, f"{_shown([found])}, with {fewer:.0%} fewer parameters", claim.verdict)


def _rmse_agrees(compared: Sequence[Difference]) -> Claim:
    clear = [of for of in compared if of.is_above or of.is_below]
    agree = sum((of.rmse < 0) == (of.auc > 0) for of in clear)
    measured = f"{agree} of the {len(clear)} differences above that are clear have the same sign"
    verdict = UNSURE if not clear else HOLDS if agree == len(clear) else FAILS
    return Claim("RMSE gives very similar results", measured, verdict)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _shown(found: Sequence[Difference]) -> str:
    if not found:
        return "no sizes in common"
    return "; ".join(f"{of.auc:+.4f} ± {2 * of.error:.4f} at {of.n_parameters:,}" for of in found)
