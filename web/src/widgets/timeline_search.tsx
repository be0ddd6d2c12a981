// Searching the whole trace: how many spans there are, and going from one to the next. The server counts and finds, by name or in args too, a text
// or a regular expression.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Found, Hit } from "../data/api";
import { ask, knowsSpans } from "../data/server";

const WAIT = 150;

/** What is searched for, as the address has it. */
export interface Wanted {
  text: string;
  pattern: boolean;
  args: boolean;
}

export interface Search extends Wanted {
  total: number | null;
  /** The names of what was found. */
  names: ReadonlySet<string> | null;
  complete: boolean;
  problem: string | null;
  /** Which of them was gone to. */
  place: number | null;
  go: (direction: 1 | -1) => void;
}

/** Finds what is wanted. The first step goes to the first match at or after `from()`. */
export function useSearch(run: number, wanted: Wanted, place: number | null, from: () => number, onHit: (hit: Hit, place: number) => void): Search {
  const [found, setFound] = useState<{ base: string; value: Found | null; problem: string | null } | null>(null);
  const { text, pattern, args } = wanted;
  const base = `run/${run}/search?text=${encodeURIComponent(text)}${pattern ? "&pattern=1" : ""}${args ? "&args=1" : ""}`;
  const latest = useRef(base);
  latest.current = base;
  const failed = (error: unknown) => {
    if (latest.current === base && !(error instanceof DOMException)) setFound({ base, value: null, problem: error instanceof Error ? error.message : String(error) });
  };
  useEffect(() => {
    setFound(null);
    if (text === "") return;
    const controller = new AbortController();
    const timer = setTimeout(() => ask<Found>(base, controller.signal).then((value) => setFound({ base, value, problem: null }), failed), WAIT);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [base]);
  const go = (direction: 1 | -1) => {
    if (text === "") return;
    const which = place !== null ? `number=${place + direction}` : direction < 0 ? "number=-1" : `after=${Math.floor(from())}`;
    void ask<Found>(`${base}&${which}`).then((value) => {
      if (latest.current !== base) return;
      setFound({ base, value, problem: null });
      if (value.hit !== null) onHit(value.hit, value.place);
    }, failed);
  };
  const known = found?.base === base ? found : null;
  const all = known?.value?.names;
  const names = useMemo(() => (all === undefined ? null : new Set(all)), [all]);
  return { ...wanted, total: known?.value?.total ?? null, names, complete: known?.value?.complete ?? true, problem: known?.problem ?? known?.value?.problem ?? null, place, go };
}

export function SearchField(props: { run: number; search: Search; onWanted: (wanted: Wanted) => void }) {
  const { search } = props;
  // A page to share may have too few spans to search.
  if (!knowsSpans(props.run)) return null;
  const enter = (event: KeyboardEvent) => {
    if (event.key === "Enter") search.go(event.shiftKey ? -1 : 1);
    if (event.key === "Escape" && event.currentTarget instanceof HTMLElement) event.currentTarget.blur();
  };
  const change = (part: Partial<Wanted>) => props.onWanted({ text: search.text, pattern: search.pattern, args: search.args, ...part });
  const count = search.total === null ? "…" : search.place === null ? `${search.total} found` : `${search.place + 1} of ${search.total}`;
  return (
    <>
      <input type="search" placeholder="Search spans" aria-label="Search spans" value={search.text} onInput={(event) => change({ text: event.currentTarget.value })} onKeyDown={enter} />
      <button type="button" aria-pressed={search.pattern} aria-label="Regular expression" title="Search by regular expression" onClick={() => change({ pattern: !search.pattern })}>.*</button>
      <button type="button" aria-pressed={search.args} title="Search the arguments of spans too: shapes, streams, sizes" onClick={() => change({ args: !search.args })}>Args</button>
      {search.text !== "" && (
        <span class="quiet" role="status" data-hits={search.total ?? undefined} data-place={search.place ?? undefined}>
          {search.problem ?? `${count}${search.complete ? "" : " so far: the search took too long"}`}
        </span>
      )}
      <button type="button" onClick={() => search.go(-1)} aria-label="Previous">‹</button>
      <button type="button" onClick={() => search.go(1)} aria-label="Next">›</button>
    </>
  );
}
