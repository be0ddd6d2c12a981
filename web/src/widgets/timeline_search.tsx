// Searching the whole trace by name: how many spans there are, and going from one to the next. The server counts and finds.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Found, Hit } from "../data/api";
import { ask } from "../data/server";

const WAIT = 150;

export interface Search {
  text: string;
  total: number | null;
  /** Which of them was gone to. */
  place: number | null;
  go: (direction: 1 | -1) => void;
}

/** Finds `text`. The first step goes to the first match at or after `from()`. */
export function useSearch(run: number, text: string, place: number | null, from: () => number, onHit: (hit: Hit, place: number) => void): Search {
  const [total, setTotal] = useState<number | null>(null);
  const base = `run/${run}/search?text=${encodeURIComponent(text)}`;
  const latest = useRef(base);
  latest.current = base;
  useEffect(() => {
    setTotal(null);
    if (text === "") return;
    const controller = new AbortController();
    const timer = setTimeout(() => ask<Found>(base, controller.signal).then((found) => setTotal(found.total), () => undefined), WAIT);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [base]);
  const go = (direction: 1 | -1) => {
    if (text === "") return;
    const which = place !== null ? `number=${place + direction}` : direction < 0 ? "number=-1" : `after=${Math.floor(from())}`;
    void ask<Found>(`${base}&${which}`).then((found) => {
      if (latest.current !== base) return;
      setTotal(found.total);
      if (found.hit !== null) onHit(found.hit, found.place);
    }, () => undefined);
  };
  return { text, total, place, go };
}

export function SearchField(props: { search: Search; onText: (text: string) => void }) {
  const { search } = props;
  const enter = (event: KeyboardEvent) => {
    if (event.key === "Enter") search.go(event.shiftKey ? -1 : 1);
    if (event.key === "Escape" && event.currentTarget instanceof HTMLElement) event.currentTarget.blur();
  };
  return (
    <>
      <input type="search" placeholder="Search spans" aria-label="Search spans" value={search.text} onInput={(event) => props.onText(event.currentTarget.value)} onKeyDown={enter} />
      {search.text !== "" && (
        <span class="quiet" role="status" data-hits={search.total ?? undefined} data-place={search.place ?? undefined}>
          {search.total === null ? "…" : search.place === null ? `${search.total} found` : `${search.place + 1} of ${search.total}`}
        </span>
      )}
      <button type="button" onClick={() => search.go(-1)} aria-label="Previous">‹</button>
      <button type="button" onClick={() => search.go(1)} aria-label="Next">›</button>
    </>
  );
}
