// A stretch of time in the address: `begin` and `end`, or what the timeline shows.

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
