// Chooses the two traces of a comparison, and swaps them.

import type { Pair } from "../base/compared";
import type { Run } from "../data/api";

interface Properties {
  runs: readonly Run[];
  pair: Pair<Run>;
  /** Keeps the choice in the address. */
  onPair: (parameters: { before: string; after: string }) => void;
}

export function PairChoice({ runs, pair, onPair }: Properties) {
  const choose = (before: number | string, after: number | string) => onPair({ before: String(before), after: String(after) });
  // Who chooses the trace of the other side means to swap.
  const chosen = { before: (id: string) => choose(id, id === String(pair.after.id) ? pair.before.id : pair.after.id), after: (id: string) => choose(id === String(pair.before.id) ? pair.after.id : pair.before.id, id) };
  return (
    <>
      {([["before", "Before"], ["after", "After"]] as const).map(([side, title]) => (
        <label key={side}>
          {title}{" "}
          <select name={side} value={String(pair[side].id)} onChange={(event) => chosen[side](event.currentTarget.value)}>
            {runs.map((run) => <option key={run.id} value={String(run.id)}>{`${run.run} / ${run.file}`}</option>)}
          </select>
        </label>
      ))}
      <button type="button" onClick={() => choose(pair.after.id, pair.before.id)}>Swap</button>
    </>
  );
}
