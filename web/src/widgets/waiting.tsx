// What is shown while an answer is waited for: how much of the trace has been read, and what is being computed.

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { shown, size } from "../base/units";
import type { ProgressData } from "../data/api";
import { ask, isStatic } from "../data/server";

/** The trace that is shown. */
export const ShownRun = createContext<number | null>(null);

/** Most answers come sooner than anybody could read a word. */
const FIRST_ASKED_AFTER = 50;
const ASKED_EVERY = 300;

function words({ bytes, total, events, computing }: ProgressData): string {
  if (events === null) return total === 0 ? "Reading the trace…" : `Reading the trace: ${size(bytes)} of ${size(total)}`;
  const what = computing.length === 0 ? "" : ` Computing ${computing.join(", ")}…`;
  return `${shown(events, "count")} events read.${what}`;
}

export function Waiting() {
  const run = useContext(ShownRun);
  const [progress, setProgress] = useState<ProgressData | null>(null);
  useEffect(() => {
    if (run === null || isStatic) return;
    const controller = new AbortController();
    const look = () => void ask<ProgressData>(`run/${run}/progress`, controller.signal).then(setProgress, () => undefined);
    const [first, timer] = [setTimeout(look, FIRST_ASKED_AFTER), setInterval(look, ASKED_EVERY)];
    return () => {
      clearTimeout(first);
      clearInterval(timer);
      controller.abort();
    };
  }, [run]);
  const reading = progress !== null && progress.events === null && progress.total > 0;
  return (
    <p class="waiting" role="status">
      {progress === null ? "Loading…" : words(progress)}
      {reading && <> <progress max={progress.total} value={progress.bytes} aria-label="Reading the trace" /></>}
    </p>
  );
}
