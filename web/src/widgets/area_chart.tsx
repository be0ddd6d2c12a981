// Values over time as stacked areas; each value holds until the next. Dragging selects a range, as do Shift and the arrow keys.

import { useRef, useState } from "preact/hooks";
import { namedPart } from "../base/colour";
import type { Stretch } from "../base/ranges";
import { duration, moment, shown } from "../base/units";
import type { Curve } from "../data/api";
import { Swatch } from "./swatch";

const [WIDTH, HEIGHT] = [1000, 220];
/** One press of an arrow key, as a part of the whole. */
const STEP = 0.02;

interface Properties {
  curve: Curve;
  /** Names of lines in the order of their colours: those of all charts that stand together. */
  names?: readonly string[];
  range?: Stretch | null;
  onRange?: (begin: number, end: number) => void;
}

export function AreaChart({ curve, names = [], range = null, onRange }: Properties) {
  const [dragged, setDragged] = useState<Stretch | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const anchor = useRef(0);
  const first = curve.times[0] ?? 0;
  const last = curve.times[curve.times.length - 1] ?? first;
  const length = Math.max(1, last - first);
  const sums = curve.times.map((_, place) => curve.lines.reduce((sum, line) => sum + (line.values[place] ?? 0), 0));
  const most = Math.max(1, ...sums);
  const x = (time: number) => ((time - first) / length) * WIDTH;
  const y = (value: number) => HEIGHT - (Math.max(0, value) / most) * HEIGHT;
  const below = curve.times.map(() => 0);
  const areas = curve.lines.map((line) => {
    const path: string[] = [];
    const bottom: string[] = [];
    curve.times.forEach((time, place) => {
      const base = below[place] ?? 0;
      const top = base + (line.values[place] ?? 0);
      const next = x(curve.times[place + 1] ?? last);
      path.push(`${x(time).toFixed(1)},${y(top).toFixed(1)} ${next.toFixed(1)},${y(top).toFixed(1)}`);
      bottom.push(`${next.toFixed(1)},${y(base).toFixed(1)} ${x(time).toFixed(1)},${y(base).toFixed(1)}`);
      below[place] = top;
    });
    return [...path, ...bottom.reverse()].join(" ");
  });
  const timeAt = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    return first + Math.min(1, Math.max(0, (event.clientX - box.left) / Math.max(1, box.width))) * length;
  };
  const between = (time: number): Stretch => ({ begin: Math.min(anchor.current, time), end: Math.max(anchor.current, time) });
  const moved = (event: PointerEvent) => {
    setAt(timeAt(event));
    if (event.buttons === 1 && onRange !== undefined) setDragged(between(timeAt(event)));
  };
  const released = () => {
    if (dragged !== null && dragged.end - dragged.begin > length / 500) onRange?.(dragged.begin, dragged.end);
    setDragged(null);
  };
  const pressed = (event: KeyboardEvent) => {
    const sign = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (sign === 0 || onRange === undefined) return;
    event.preventDefault();
    const now = range ?? { begin: first, end: last };
    const step = sign * STEP * length;
    const begin = Math.max(first, now.begin + (event.shiftKey ? 0 : step));
    const end = Math.min(last, now.end + (event.shiftKey || range !== null ? step : 0));
    if (end - begin > length / 500) onRange(begin, end);
  };
  const colour = (index: number) => {
    const name = curve.lines[index]?.title ?? "";
    return namedPart(name, names.includes(name) ? names.indexOf(name) : index);
  };
  const place = at === null ? -1 : curve.times.findLastIndex((time) => time <= at);
  const marked = dragged ?? range;
  return (
    <section class="bars">
      <h2>{curve.title}</h2>
      <p class="quiet">
        Peak: {shown(most, curve.unit)}, over {duration(last - first)}
        {place >= 0 && `; at ${moment(curve.times[place] ?? 0)}: ${shown(sums[place] ?? 0, curve.unit)}`}
        {onRange !== undefined && "; drag to select a range"}
      </p>
      <div class="plot">
      <svg
        class="chart"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        tabIndex={onRange === undefined ? undefined : 0}
        aria-label={`${curve.title}: at most ${shown(most, curve.unit)}${onRange === undefined ? "" : ". Arrow keys move the selected range, with Shift its end."}`}
        onPointerDown={(event) => { anchor.current = timeAt(event); }}
        onPointerMove={moved}
        onPointerUp={released}
        onPointerLeave={() => { setAt(null); released(); }}
        onKeyDown={pressed}
      >
        {[0.25, 0.5, 0.75].map((height) => <line key={height} class="grid" x1="0" x2={WIDTH} y1={HEIGHT * height} y2={HEIGHT * height} />)}
        {areas.map((points, index) => (
          <polygon key={index} points={points} fill={colour(index)} />
        ))}
        {marked !== null && <rect class="selection" x={x(marked.begin)} width={Math.max(1, x(marked.end) - x(marked.begin))} height={HEIGHT} />}
      </svg>
        <p class="scale" aria-hidden="true"><span>{shown(most, curve.unit)}</span><span>{shown(Math.round(most / 2), curve.unit)}</span><span>0</span></p>
        <p class="times" aria-hidden="true"><span>{moment(first, (last - first) / 100)}</span><span>{moment(Math.round((first + last) / 2), (last - first) / 100)}</span><span>{moment(last, (last - first) / 100)}</span></p>
      </div>
      <ul class="legend">
        {curve.lines.map((line, index) => line.values.some((value) => value > 0) && <li key={line.key}><Swatch colour={colour(index)} />{line.title}</li>)}
      </ul>
    </section>
  );
}
