// The Python stacks that calls came from: the line of the program, how often, and the functions around it.

import { duration } from "../base/units";
import type { StackData } from "../data/api";
import type { To } from "./call_list";
import { SourceLink } from "./source_link";

/** torch writes a function as `file.py(12): name`. */
function Entry({ text, to }: { text: string; to: To }) {
  const [, file, line, name] = /^(.*)\((\d+)\): (.*)$/s.exec(text) ?? [];
  if (file === undefined || name === undefined) return <>{text}</>;
  return <>{name} <SourceLink place={`${file}:${line ?? ""}`} to={to} /></>;
}

export function CallStacks({ stacks, to }: { stacks: readonly StackData[]; to: To }) {
  return (
    <section aria-label="Called from">
      <h3>Called from</h3>
      {stacks.map((stack, place) => (
        <details key={place} open={place === 0}>
          <summary>
            {stack.source !== null && <><SourceLink place={stack.source} to={to} />, </>}
            {stack.calls} {stack.calls === 1 ? "call" : "calls"}, {duration(stack.total)}
          </summary>
          <ol class="stack">
            {stack.entries.map((entry, depth) => <li key={depth}><Entry text={entry} to={to} /></li>)}
          </ol>
        </details>
      ))}
    </section>
  );
}
