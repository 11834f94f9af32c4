"""A fitted estimator as a card for notebooks: HTML with inline SVG and CSS, without scripts."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ._text import nats, plain

# Most characters of a text: a card has at most 20 kB, and an escaped character takes up to six.
LONGEST = 400
# Most characters of a name.
NAME = 24
# Points of the line of the log evidence, one for every two pixels.
POINTS = 100
# Width and height of that line, and of the bar of the most relevant feature, in pixels.
SPARK = (200, 32)
BAR = 200
# Labels that are shown first, if they exist.
FRONT = ["relevance vectors", "centres", "support vectors", "noise", "log evidence", "lower bound", "log probability"]
# The colours have a contrast of at least 4.5 to 1 in light and dark mode.
STYLE = """
.relvec{--ink:#1f2328;--dim:#59636e;--line:#d1d9e0;--paper:#fff;--blue:#0072b2;--amber:#8a5a00;--edge:#e0a100;--warm:#fff8e6;
font:13px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);border:1px solid var(--line);
border-radius:6px;padding:10px 14px;margin:4px 0;max-width:44em}
@media(prefers-color-scheme:dark){.relvec{--ink:#e6edf3;--dim:#9ba5b0;--line:#3d444d;--paper:#161b22;--blue:#56b4e9;
--amber:#f0b429;--edge:#f0b429;--warm:#2b2410}}
.relvec.amber{border:2px solid var(--edge)}
.relvec header{display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1.5em}
.relvec b{font-weight:600}
.relvec small,.relvec dt,.relvec th,.relvec summary{color:var(--dim);font-weight:400;font-size:12px}
.relvec dl{display:flex;flex-wrap:wrap;gap:4px 2em;margin:8px 0}
.relvec dd{margin:0}
.relvec p{background:var(--warm);border-left:3px solid var(--edge);margin:6px 0;padding:4px 8px}
.relvec p b{color:var(--amber)}
.relvec svg{display:block;margin:6px 0;max-width:100%}
.relvec text{fill:var(--ink);font-size:12px}
.relvec rect{fill:var(--blue)}
.relvec polyline{fill:none;stroke:var(--blue);stroke-width:1.5}
.relvec table{border-collapse:collapse;font-size:12px;margin:4px 0;background:none}
.relvec tr{background:none!important}
.relvec td,.relvec th{text-align:left;padding:1px 12px 1px 0;vertical-align:top;border:0;color:var(--ink)}
.relvec th{color:var(--dim);white-space:nowrap}
.relvec table.n td,.relvec table.n th{text-align:right}
""".replace("\n", "")


def card(
    own: dict[str, Any],
    verdict: tuple[str, str],
    lines: list[tuple[str, str]],
    features: list[tuple[str, float]],
    weights: tuple[list[str], list[list[str]]],
    trace: np.ndarray[Any, Any],
) -> str:
    """Return the card.

    `verdict`: the task and how the fit ended; `lines`: labels and values; `features`: names and shares; `weights`:
    titles and cells; `trace`: the log evidence of each iteration, (n_iter,).
    """
    front = "".join(f"<div><dt>{label}</dt><dd>{_text(value)}</dd></div>" for label, value in lines if label in FRONT)
    rows = "".join(
        f"<tr><th>{_text(label)}</th><td>{_text(value)}</td></tr>"
        for label, value in lines
        if label and label not in (*FRONT, "feature relevance")
    )
    warnings = "".join(f"<p><b>Warning:</b> {_text(text)}</p>" for text in own["warnings"])
    parts = [
        f"<header><span><b>{_text(own['estimator'])}</b> {_text(verdict[0])}</span>",
        f"<small>{_text(verdict[1])}</small></header>{warnings}<dl>{front}</dl>{_bars(features)}{_spark(trace)}",
        _folded("model and fit", f"<table>{rows}</table>"),
        _folded(f"weights of {lines_label(lines)}", _table(*weights)),
    ]
    amber = " amber" if own["warnings"] else ""
    return f'<div class="relvec{amber}"><style>{STYLE}</style>{"".join(parts)}</div>'


def lines_label(lines: list[tuple[str, str]]) -> str:
    """Return the name of the basis functions."""
    return next(label for label, _ in lines if label in FRONT)


def folded_below(card: str, diagram: str) -> str:
    """Return the card, with scikit-learn's display of the parameters folded below."""
    return f'<div style="font:12px system-ui,sans-serif">{card}{_folded("parameters", diagram)}</div>'


def _folded(title: str, html: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{html}</details>"


def _text(text: str) -> str:
    text = plain(text)
    return escape(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")


def _name(name: str) -> str:
    return _text(name if len(name) <= NAME else f"{name[: NAME - 3]}...")


def _bars(features: list[tuple[str, float]]) -> str:
    """Return the shares of features as bars, the most relevant first."""
    if not features:
        return ""
    left, step = 150, 17
    out = []
    for i, (name, share) in enumerate(features):
        width, y = max(BAR * share / features[0][1], 1.0), i * step
        out.append(
            f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{_name(name)}</text>'
            f'<rect x="{left}" y="{y + 3}" width="{width:.1f}" height="10"/>'
            f'<text x="{left + width + 6:.1f}" y="{y + 12}">{100.0 * share:.1f} %</text>'
        )
    size = f'width="{left + BAR + 60}" height="{len(features) * step}"'
    return f'<small>feature relevance</small><svg {size} role="img" aria-label="feature relevance">{"".join(out)}</svg>'


def _spark(trace: np.ndarray[Any, Any]) -> str:
    """Return the log evidence by iteration as a line, if there are three or more iterations and it changed."""
    if len(trace) < 3 or not np.all(np.isfinite(trace)) or np.ptp(trace) == 0.0:
        return ""
    at = np.unique(np.linspace(0, len(trace) - 1, POINTS).round().astype(int))
    x = SPARK[0] * at / at[-1]
    y = 2.0 + (SPARK[1] - 4.0) * (trace.max() - trace[at]) / np.ptp(trace)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    title = f"log evidence of the search by iteration: {nats(trace[0])} to {nats(trace[-1])}"
    size = f'width="{SPARK[0]}" height="{SPARK[1]}"'
    return f'<small>{title}</small><svg {size} role="img" aria-label="{title}"><polyline points="{points}"/></svg>'


def _table(titles: list[str], cells: list[list[str]]) -> str:
    head = "".join(f"<th>{_name(title)}</th>" for title in titles)
    rows = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in cells)
    return f'<table class="n"><tr>{head}</tr>{rows}</table>'
