// Notes on a timeline: words at a moment. They are in the address, so a link carries them to others.

export interface Note {
  /** The moment, in nanoseconds of the trace. */
  at: number;
  text: string;
}

/** An address has room for so many, and each for so many letters. */
const [MOST, LONGEST] = [50, 200];

/** The notes of an address, in order of time; what is none is left out. */
export function notesOf(parameter: string | undefined): Note[] {
  if (parameter === undefined) return [];
  let known: unknown;
  try {
    known = JSON.parse(parameter);
  } catch {
    return [];
  }
  const pairs: unknown[] = Array.isArray(known) ? known : [];
  const notes = pairs.flatMap((pair) => (Array.isArray(pair) && Number.isFinite(pair[0]) && typeof pair[1] === "string" ? [{ at: pair[0] as number, text: pair[1].slice(0, LONGEST) }] : []));
  return notes.slice(0, MOST).toSorted((left, right) => left.at - right.at);
}

/** What the address says of them; `undefined` for none. */
export function notesText(notes: readonly Note[]): string | undefined {
  return notes.length === 0 ? undefined : JSON.stringify(notes.map(({ at, text }) => [Math.round(at), text]));
}
