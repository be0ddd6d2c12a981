// A stretch of time in the address: `begin` and `end`, or what the timeline shows.

import { span } from "./units";

export interface Stretch {
  begin: number;
  end: number;
}

function stretch(begin: string | undefined, end: string | undefined): Stretch | null {
  if (begin === undefined || end === undefined) return null;
  const read = { begin: Number(begin), end: Number(end) };
  return Number.isFinite(read.begin) && Number.isFinite(read.end) && read.end > read.begin ? read : null;
}

/** The range that was selected. */
export function selected(parameters: Record<string, string>): Stretch | null {
  return stretch(parameters["begin"], parameters["end"]);
}

/** The range that was selected, or else the one that is seen. */
export function chosen(parameters: Record<string, string>): Stretch | null {
  return selected(parameters) ?? stretch(parameters["from"], parameters["to"]);
}

/** A question about a range. */
export function within(call: string, range: Stretch): string {
  return `${call}${call.includes("?") ? "&" : "?"}begin=${Math.round(range.begin)}&end=${Math.round(range.end)}`;
}

/** The parameters that keep a range in the address. */
export function keptRange(parameters: Record<string, string>): Record<string, string> {
  const { begin, end } = parameters;
  return begin === undefined || end === undefined ? {} : { begin, end };
}

interface Named extends Stretch {
  name: string;
}

/** A range may miss the ends of steps by this part of them. */
const NEAR = 0.02;

/** The first and the last step of a range that consists of steps; `null` for any other. */
export function stepsOf<S extends Named>(range: Stretch, steps: readonly S[]): readonly [S, S] | null {
  const near = (step: S) => (step.end - step.begin) * NEAR + 1;
  const first = steps.find((step) => Math.abs(step.begin - range.begin) <= near(step));
  const last = steps.findLast((step) => Math.abs(step.end - range.end) <= near(step));
  return first === undefined || last === undefined || first.begin > last.begin ? null : [first, last];
}

/** What people call a range: its steps, or its time. */
export function rangeTitle(range: Stretch, steps: readonly Named[]): string {
  const found = stepsOf(range, steps);
  if (found === null) return span(range.begin, range.end);
  const [first, last] = found.map((step) => step.name.replace(/^\D*#?/, ""));
  return first === last ? `Step ${first}` : `Steps ${first}–${last}`;
}
