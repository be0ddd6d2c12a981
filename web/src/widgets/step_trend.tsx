// Calls by step: a bar for each, so that a change over time is seen.

import { part } from "../base/colour";
import { duration, shown } from "../base/units";
import type { StepData } from "../data/api";

const HEIGHT = 60;

function words(step: StepData): string {
  const which = step.first === step.last ? `step ${step.first}` : `steps ${step.first} to ${step.last}`;
  const share = step.share === null ? "" : `, ${shown(step.share, "percent")} of the step`;
  return `${which}: ${duration(step.time)} in ${shown(step.calls, "count")} ${step.calls === 1 ? "call" : "calls"}${share}`;
}

export function StepTrend({ steps }: { steps: readonly StepData[] }) {
  const most = Math.max(1, ...steps.map((step) => step.time));
  const [first, last] = [steps[0], steps[steps.length - 1]];
  return (
    <section aria-label="By step">
      <h3>By step</h3>
      <svg class="trend" viewBox={`0 0 ${steps.length} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={steps.map(words).join("; ")}>
        {steps.map((step, place) => (
          <rect key={place} x={place + 0.1} width="0.8" y={HEIGHT * (1 - step.time / most)} height={HEIGHT * (step.time / most)} fill={part(0)}><title>{words(step)}</title></rect>
        ))}
      </svg>
      <p class="quiet ends"><span>step {first?.first}</span><span>at most {duration(most)}</span><span>step {last?.last}</span></p>
    </section>
  );
}
