// A notice when traces appear in a folder that is shown, as while a job writes them.

import { useRef, useState } from "preact/hooks";
import type { Run } from "../data/api";

interface Properties {
  runs: readonly Run[];
  /** The trace that is shown. */
  shown: number | undefined;
  onShow: (run: Run) => void;
}

export function Arrivals({ runs, shown, onShow }: Properties) {
  const known = useRef<Set<number> | null>(null);
  const [, setDismissed] = useState(0);
  known.current ??= new Set(runs.map((run) => run.id));
  const old = known.current;
  if (shown !== undefined) old.add(shown);
  const arrived = runs.filter((run) => !old.has(run.id));
  const last = arrived.reduce<Run | undefined>((latest, run) => (latest === undefined || run.modified >= latest.modified ? run : latest), undefined);
  if (last === undefined) return null;
  const dismiss = () => {
    for (const run of arrived) old.add(run.id);
    setDismissed((before) => before + 1);
  };
  const show = () => {
    dismiss();
    onShow(last);
  };
  return (
    <p class="notice" role="status" data-arrived={arrived.length}>
      {arrived.length === 1 ? "A new trace has arrived: " : `${arrived.length} new traces have arrived; the latest is `}
      {last.run} / {last.file} <button type="button" onClick={show}>Show it</button> <button type="button" onClick={dismiss} aria-label="Dismiss">✕</button>
    </p>
  );
}
