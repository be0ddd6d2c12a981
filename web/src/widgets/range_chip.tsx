// The range that the page is about, in the header: some steps or a time. It stays while views change, and can be chosen and cleared here.

import { useState } from "preact/hooks";
import { rangeTitle, stepsOf, type Stretch } from "../base/ranges";
import { duration } from "../base/units";
import type { Band } from "../data/api";
import { useAnswer } from "../data/server";

interface Properties {
  run: number;
  range: Stretch | null;
  /** Whether the shown view can be about a range. */
  applies: boolean;
  onRange: (range: Stretch | null) => void;
}

export function RangeChip({ run, range, applies, onRange }: Properties) {
  const loaded = useAnswer<Band[]>(`run/${run}/steps`);
  const [open, setOpen] = useState(false);
  const steps = loaded.state === "ready" ? loaded.value : [];
  if (range === null && steps.length < 2) return null;
  const title = range === null ? "All of the time" : rangeTitle(range, steps);
  return (
    <span class={range === null ? "chip" : applies ? "chip on" : "chip off"}>
      <details class="menu" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary title={applies ? "The range that all views are about" : "This view shows the whole recording"}>
          <span class="hidden">Range: </span>
          {title}
          {range !== null && stepsOf(range, steps) !== null && <span class="quiet"> {duration(range.end - range.begin)}</span>}
          {!applies && range !== null && <span class="quiet"> not here</span>}
        </summary>
        {open && <div>
          {steps.length > 0 && <StepChoice steps={steps} range={range} onRange={(chosen) => { setOpen(false); onRange(chosen); }} />}
          <p class="quiet">Any other time: Shift and drag in the timeline, or drag over a memory chart.</p>
        </div>}
      </details>
      {range !== null && <button type="button" class="clear" onClick={() => onRange(null)} aria-label="Clear the range" title="Clear the range">✕</button>}
    </span>
  );
}

function StepChoice({ steps, range, onRange }: { steps: readonly Band[]; range: Stretch | null; onRange: (range: Stretch) => void }) {
  const chosen = range === null ? null : stepsOf(range, steps);
  const [first, setFirst] = useState(chosen === null ? 0 : steps.indexOf(chosen[0]));
  const [last, setLast] = useState(chosen === null ? steps.length - 1 : steps.indexOf(chosen[1]));
  const choose = () => {
    const [from, to] = [steps[Math.min(first, last)], steps[Math.max(first, last)]];
    if (from !== undefined && to !== undefined) onRange({ begin: from.begin, end: to.end });
  };
  const list = (label: string, value: number, set: (place: number) => void) => (
    <label>
      {label}{" "}
      <select value={String(value)} onChange={(event) => set(Number(event.currentTarget.value))}>
        {steps.map((step, place) => <option key={place} value={String(place)}>{step.name}</option>)}
      </select>
    </label>
  );
  return (
    <p class="tabs">
      {list("From", first, setFirst)} {list("to", last, setLast)} <button type="button" onClick={choose}>Apply</button>
    </p>
  );
}
