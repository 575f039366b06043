"""The report of a study: one page that needs nothing else, and its figures as files."""

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any
from xml.etree import ElementTree

import polars as pl

from mixedals._atomic import replacing
from mixedals.experiments.claims import EQUAL, Claim, claims
from mixedals.experiments.figures import INK, Panel, panels
from mixedals.experiments.records import Records
from mixedals.experiments.results import Curve, curves
from mixedals.experiments.scores import N_GROUPS

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_MODEL_COLUMNS = (
    "method", "model", "penalties", "parameters", "ROC AUC", "±", "RMSE", "iteration", "seconds",
)  # fmt: skip
_SEARCHED = (
    "Penalties were chosen by a grid search over three random folds of the first 90 %, on the "
    "largest model of each method."
)
_NOT_SEARCHED = "Penalties were not searched for."


def write_report(records: Records, folder: str | os.PathLike[str]) -> tuple[Path, list[Claim]]:
    """Write a study's report and its figures into a folder.

    Parameters
    ----------
    records
        Of a study that is done.
    folder
        Gets ``report.html``, and a folder ``figures`` with PNG and SVG files.

    Returns
    -------
    tuple of Path and list of Claim
        The page, and the paper's claims about the arms of the study.
    """
    folder = Path(folder)
    of_arm = curves(records)
    found = claims(of_arm)
    drawn = panels(of_arm, records.fact("parts")["popularity"])
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for panel in drawn:
        for suffix in ("png", "svg"):
            with replacing(folder / "figures" / f"{panel.name}.{suffix}") as file:
                panel.save(file, suffix)
    page = folder / "report.html"
    with replacing(page) as file:
        file.write_text(_page(records, of_arm, found, drawn), encoding="utf-8")
    return page, found


def _page(
    records: Records, of_arm: Mapping[str, Curve], found: Sequence[Claim], drawn: Sequence[Panel]
) -> str:
    template = files("mixedals.experiments").joinpath("report.html").read_text(encoding="utf-8")
    low, high = records.fact("identity")["bounds"]
    return Template(template).substitute(
        name=escape(records.fact("name")),
        claims=_claims_table(found),
        figures="\n".join(map(_figure, drawn)),
        models=_table(_MODEL_COLUMNS, _model_rows(of_arm.values())),
        facts=_facts(records),
        low=f"{low:g}",
        high=f"{high:g}",
        equal=f"{EQUAL:g}",
        n_groups=N_GROUPS,
        penalties=_SEARCHED if records.fact("identity")["grid search"] else _NOT_SEARCHED,
    )


def _claims_table(found: Sequence[Claim]) -> str:
    if not found:
        return "<p>The methods of this study are not those that the paper compares.</p>"
    rows = "".join(
        f'<tr><td>{escape(claim.text)}</td><td class="{escape(claim.verdict)}">'
        f"{escape(claim.verdict)}</td><td>{escape(claim.measured)}</td></tr>"
        for claim in found
    )
    head = "<thead><tr><th>claim</th><th></th><th>measured</th></tr></thead>"
    return f'<table class="claims">{head}<tbody>{rows}</tbody></table>'


def _figure(panel: Panel) -> str:
    table = _table(panel.columns, panel.rows)
    return (
        f'<figure id="{panel.name}">{inline_svg(panel)}<details><summary>as a table</summary>'
        f'<div class="wide">{table}</div></details></figure>'
    )


def inline_svg(panel: Panel) -> str:
    """A panel's SVG to stand in a page: its ids are its own, its spots say what they know."""
    text = io.StringIO()
    panel.save(text, "svg", transparent=True)
    root = ElementTree.fromstring(text.getvalue())
    for name in ("metadata", "defs"):
        for element in root.findall(f"{{{_SVG}}}{name}"):
            root.remove(element)
    for name in ("width", "height"):
        del root.attrib[name]
    root.set("role", "group")
    root.set("aria-label", panel.title)
    used = ElementTree.tostring(root, encoding="unicode")
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                continue
            value = value.replace("url(#", f"url(#{panel.name}-").replace(INK, "currentColor")
            element.set(key, f"#{panel.name}-{value[1:]}" if key.endswith("href") else value)
        name = element.attrib.pop("id", "")
        if name in panel.tips:
            tip = panel.tips[name]
            element.attrib |= {"data-tip": tip, "aria-label": tip, "role": "img", "tabindex": "0"}
        elif name and f"#{name}" in used:
            element.set("id", f"{panel.name}-{name}")
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _model_rows(of_arm: Iterable[Curve]) -> list[Sequence[Any]]:
    return [
        (
            curve.title,
            model.label,
            ", ".join(
                f"{name} {model.settings[name]:g}"
                for name in ("reg", "projection_reg")
                if name in model.settings
            ),
            model.n_parameters,
            float(model.values("test_auc").mean()),
            float(model.values("test_auc").std(ddof=1)) if len(model.fits) > 1 else None,
            float(model.values("test_rmse").mean()),
            "/".join(map(str, model.fits["best_iteration"])),
            f"{model.values('seconds').mean():.2f}",
        )
        for curve in of_arm
        for model in curve.models
    ]


def _facts(records: Records) -> str:
    fits = pl.concat([records.fits("grid"), records.fits("sweep")], how="vertical_relaxed")
    seconds = fits["seconds"].sum()
    facts = {
        part: f"{of['ratings']:,} ratings by {of['users']:,} users of {of['items']:,} items"
        for part, of in records.fact("parts").items()
        if part != "popularity"
    } | {
        "fits": f"{len(fits):,}, of which {len(records.fits('grid')):,} in the grid search",
        "seconds of fitting": f"{seconds:,.0f}",
        "machine": "; ".join(fits["machine"].unique().sort()),
        "mixedals": ", ".join(fits["version"].unique().sort()),
        "finished": fits["finished"].max(),
    }
    return "".join(f"<dt>{name}</dt><dd>{escape(str(of))}</dd>" for name, of in facts.items())


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    rows = list(rows)
    first = rows[0] if rows else columns
    numeric = [isinstance(value, int | float) for value in first]
    kinds = [' class="number"' if of else "" for of in numeric]

    def row(tag: str, values: Iterable[str]) -> str:
        cells = (
            f"<{tag}{kind}>{escape(of)}</{tag}>" for kind, of in zip(kinds, values, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(row("td", map(_shown, values)) for values in rows)
    return f"<table><thead>{row('th', columns)}</thead><tbody>{body}</tbody></table>"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
