"""The picture of mprof's files: memory over time, children, and the calls of functions. SVG, which needs no library."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from html import escape
from typing import Any

from hotspan.memory._mprof_files import function_labels

_WIDTH, _HEIGHT = 1300, 540
_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 80, 40, 840, 430
_LINES = ("#222222", "#1f5fbf", "#c0392b", "#1e8449", "#7d3c98", "#b9770e", "#117a8b")
_CALLS = ("#17a2b8", "#d4a017", "#28a745", "#dc3545", "#4c6ef5")
_MOST_LEGENDS = 20


@dataclass
class Options:
    """What to draw, as ``mprof plot`` has it."""

    title: str | None = None
    functions: bool = True
    window: tuple[float, float] | None = None
    flame: bool = False
    slope: bool = False


@dataclass
class _Curve:
    label: str
    points: list[tuple[float, float]]
    color: str

    def slope(self) -> tuple[float, float]:
        """The line that lies closest to the points: MiB per second, and MiB at the beginning."""
        count = len(self.points)
        mean_x = sum(x for x, _ in self.points) / count
        mean_y = sum(y for _, y in self.points) / count
        spread = sum((x - mean_x) ** 2 for x, _ in self.points)
        rise = sum((x - mean_x) * (y - mean_y) for x, y in self.points) / spread if spread else 0.0
        return rise, mean_y - rise * mean_x


@dataclass
class _Drawing:
    options: Options
    curves: list[_Curve] = field(default_factory=list)
    calls: list[tuple[str, list[float], str]] = field(default_factory=list)
    depth: int = 0


def svg(profiles: list[dict[str, Any]], options: Options) -> str:
    """Return the picture of one or several files."""
    drawing = _Drawing(options)
    for profile in profiles:
        _add(drawing, profile, len(profiles) == 1)
    title = options.title
    if title is None and len(profiles) == 1:
        title = profiles[0]["cmd_line"]
    return "\n".join([*_head(title or ""), *_body(drawing), *_legend(drawing), "</svg>", ""])


def _add(drawing: _Drawing, profile: dict[str, Any], alone: bool) -> None:
    points = list(zip(profile["timestamp"], profile["mem_usage"], strict=True))
    calls = profile["func_timestamp"]
    for ranges in calls.values():
        points += [
            (moment, memory) for call in ranges for moment, memory in zip(call[:2], call[2:4], strict=True)
        ]
    points.sort()
    start = points[0][0]
    begun = time.strftime("%d / %m / %Y - start at %H:%M:%S", time.localtime(start))
    color = _LINES[len(drawing.curves) % len(_LINES)]
    drawing.curves.append(_Curve(begun, [(moment - start, memory) for moment, memory in points], color))
    for child, readings in profile["children"].items():
        color = _LINES[len(drawing.curves) % len(_LINES)]
        moments = [(moment - start, memory) for memory, moment in readings]
        drawing.curves.append(_Curve(f"child {child}", moments, color))
    if not (alone and drawing.options.functions):
        return
    labels = function_labels(calls)
    for index, (name, ranges) in enumerate(calls.items()):
        for begin, end, before, after, *depth in ranges:
            label = f"{labels[name]} {end - begin:.3f}s"
            level = depth[0] if depth else 0
            drawing.depth = max(drawing.depth, level + 1)
            call = [begin - start, end - start, before, after, level]
            drawing.calls.append((label, call, _CALLS[index % len(_CALLS)]))


def _head(title: str) -> list[str]:
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{_LEFT + _PLOT_WIDTH / 2}" y="22" text-anchor="middle" font-size="15">{escape(title)}</text>',
    ]


def _step(span: float) -> float:
    """A round distance between two marks of an axis, of which there are about eight."""
    power = 10.0 ** math.floor(math.log10(span / 8)) if span > 0 else 1.0
    return next(power * factor for factor in (1, 2, 5, 10) if span <= 8 * power * factor)


def _body(drawing: _Drawing) -> list[str]:
    points = [point for curve in drawing.curves for point in curve.points]
    low, high = drawing.options.window or (0.0, max(x for x, _ in points) or 1.0)
    shown = [point for point in points if low <= point[0] <= high] or points
    top = max(y for _, y in shown) * 1.05 or 1.0
    bottom = min(0.95 * min(y for _, y in shown), top - 1e-9)

    def x(moment: float) -> float:
        return _LEFT + (moment - low) / ((high - low) or 1.0) * _PLOT_WIDTH

    def y(memory: float) -> float:
        return _TOP + (top - memory) / (top - bottom) * _PLOT_HEIGHT

    lines = [
        f'<clipPath id="plot"><rect x="{_LEFT}" y="{_TOP}" width="{_PLOT_WIDTH}" height="{_PLOT_HEIGHT}"/></clipPath>'
    ]
    for start, end, place, unit in ((low, high, x, "s"), (bottom, top, y, "MiB")):
        step = _step(end - start)
        mark = math.ceil(start / step) * step
        while mark <= end:
            lines.append(_mark(unit, place(mark), f"{mark:g}" if step >= 1 else f"{mark:.3g}"))
            mark += step
    lines.append(
        f'<text x="{_LEFT + _PLOT_WIDTH / 2}" y="{_HEIGHT - 20}" text-anchor="middle">time (in seconds)</text>'
    )
    middle = _TOP + _PLOT_HEIGHT / 2
    lines.append(
        f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">'
        "memory used (in MiB)</text>"
    )
    lines.append('<g clip-path="url(#plot)">')
    for curve in drawing.curves:
        path = " ".join(f"{x(moment):.2f},{y(memory):.2f}" for moment, memory in curve.points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{curve.color}" stroke-width="1.3"/>')
        if drawing.options.slope:
            rise, base = curve.slope()
            ends = [(low, base + rise * low), (high, base + rise * high)]
            path = " ".join(f"{x(moment):.2f},{y(memory):.2f}" for moment, memory in ends)
            lines.append(f'<polyline points="{path}" stroke="{curve.color}" stroke-dasharray="4 3"/>')
    peak = max(drawing.curves[0].points, key=lambda point: point[1])
    lines.append(
        f'<path d="M{_LEFT} {y(peak[1]):.2f}H{_LEFT + _PLOT_WIDTH}M{x(peak[0]):.2f} {_TOP}V{_TOP + _PLOT_HEIGHT}" '
        'stroke="#d22" stroke-dasharray="6 4"/>'
    )
    for label, (begin, end, before, after, depth), color in drawing.calls:
        if drawing.options.flame:
            height = _PLOT_HEIGHT / (drawing.depth + 1)
            lines.append(
                f'<rect x="{x(begin):.2f}" y="{_TOP + _PLOT_HEIGHT - (depth + 1) * height:.2f}" '
                f'width="{max(0.5, x(end) - x(begin)):.2f}" height="{height:.2f}" fill="{color}" '
                f'fill-opacity="0.35" stroke="{color}"><title>{escape(label)}</title></rect>'
            )
            continue
        for moment, memory, side in ((begin, before, 7), (end, after, -7)):
            lines.append(
                f'<path d="M{x(moment) + side:.2f} {y(memory) - 20:.2f}h{-side}v40h{side}" fill="none" '
                f'stroke="{color}" stroke-width="2"><title>{escape(label)}</title></path>'
            )
    return [*lines, "</g>"]


def _mark(unit: str, at: float, text: str) -> str:
    bottom = _TOP + _PLOT_HEIGHT
    if unit == "s":
        line = f"M{at:.2f} {_TOP}V{bottom}"
        label = f'<text x="{at:.2f}" y="{bottom + 18}" text-anchor="middle">{text}</text>'
    else:
        line = f"M{_LEFT} {at:.2f}H{_LEFT + _PLOT_WIDTH}"
        label = f'<text x="{_LEFT - 8}" y="{at + 4:.2f}" text-anchor="end">{text}</text>'
    return f'<path d="{line}" stroke="#dddddd"/>{label}'


def _legend(drawing: _Drawing) -> list[str]:
    entries = []
    for curve in drawing.curves:
        slope = f" slope {curve.slope()[0]:.5f}" if drawing.options.slope else ""
        entries.append((curve.label + slope, curve.color))
    if not drawing.options.flame:
        entries += [(label, color) for label, _, color in drawing.calls]
    lines = []
    for index, (label, color) in enumerate(entries[:_MOST_LEGENDS]):
        at = _TOP + 14 + 20 * index
        lines.append(f'<path d="M{_LEFT + _PLOT_WIDTH + 16} {at - 4}h20" stroke="{color}" stroke-width="2"/>')
        lines.append(f'<text x="{_LEFT + _PLOT_WIDTH + 42}" y="{at}">{escape(label)}</text>')
    if len(entries) > _MOST_LEGENDS:
        at = _TOP + 14 + 20 * _MOST_LEGENDS
        more = len(entries) - _MOST_LEGENDS
        lines.append(f'<text x="{_LEFT + _PLOT_WIDTH + 42}" y="{at}">and {more} more</text>')
    return lines
