// Values over time as stacked areas; each value holds until the next.

import { part } from "../base/colour";
import { duration, shown } from "../base/units";
import type { Curve } from "../data/api";

const [WIDTH, HEIGHT] = [1000, 220];

export function AreaChart({ curve }: { curve: Curve }) {
  const first = curve.times[0] ?? 0;
  const last = curve.times[curve.times.length - 1] ?? first;
  const sums = curve.times.map((_, place) => curve.lines.reduce((sum, line) => sum + (line.values[place] ?? 0), 0));
  const most = Math.max(1, ...sums);
  const x = (time: number) => (last === first ? 0 : ((time - first) / (last - first)) * WIDTH);
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
  return (
    <section class="bars">
      <h2>{curve.title}</h2>
      <p class="quiet">
        Most: {shown(most, curve.unit)}, over {duration(last - first)}
      </p>
      <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${curve.title}: at most ${shown(most, curve.unit)}`}>
        {areas.map((points, index) => (
          <polygon key={index} points={points} fill={part(index)} />
        ))}
      </svg>
      <ul class="legend">
        {curve.lines.map((line, index) => (
          <li key={line.key}>
            <svg width="10" height="10" aria-hidden="true"><rect width="10" height="10" fill={part(index)} /></svg> {line.title}
          </li>
        ))}
      </ul>
    </section>
  );
}
