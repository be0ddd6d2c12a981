// Each step as a dot, before and after on one scale: how far steps spread says whether a difference is one. Warm-up is hollow.

import { duration } from "../base/units";
import type { DotData } from "../data/api";

const [WIDTH, HEIGHT, MARGIN] = [1000, 34, 12];

export function StepDots({ before, after }: { before: readonly DotData[]; after: readonly DotData[] }) {
  const all = [...before, ...after];
  if (before.length === 0 || after.length === 0) return null;
  const [least, most] = [Math.min(...all.map((dot) => dot.time)), Math.max(...all.map((dot) => dot.time))];
  const x = (time: number) => MARGIN + ((time - least) / Math.max(1, most - least)) * (WIDTH - 2 * MARGIN);
  const line = (title: string, dots: readonly DotData[], side: "before" | "after") => (
    <>
      <span class="name">{title}</span>
      <svg class={`dots ${side}`} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${title}: ${dots.length} steps, ${dots.map((dot) => duration(dot.time)).join(", ")}`}>
        <line class="grid" x1="0" x2={WIDTH} y1={HEIGHT / 2} y2={HEIGHT / 2} />
        {dots.map((dot, place) => (
          // Dots of like steps stand beside each other in height.
          <circle key={place} class={dot.warm_up ? "warm" : ""} cx={x(dot.time)} cy={HEIGHT / 2 + ((place % 5) - 2) * 4} r="5"><title>{`Step ${dot.number}: ${duration(dot.time)}${dot.warm_up ? ", warm-up" : ""}`}</title></circle>
        ))}
      </svg>
    </>
  );
  return (
    <section class="bars" aria-label="Steps">
      <h2>Each step <span class="quiet">a dot for each; warm-up is hollow</span></h2>
      <div class="dotlist">
        {line("Before", before, "before")}
        {line("After", after, "after")}
        <span />
        <p class="quiet ends"><span>{duration(least)}</span><span>{duration(most)}</span></p>
      </div>
    </section>
  );
}
