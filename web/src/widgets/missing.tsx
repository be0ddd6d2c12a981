// A line that says of a trace that was cut off, lost events or was repaired that it was: numbers of every view may be off.

import type { Run } from "../data/api";
import { useAnswer } from "../data/server";

interface Properties {
  run: Run;
  /** Whether several traces are shown. */
  named?: boolean;
  /** Where all of it is said. */
  href: string;
}

export function Missing({ run, named = false, href }: Properties) {
  const loaded = useAnswer<string[]>(`run/${run.id}/damage`);
  if (loaded.state !== "ready" || loaded.value.length === 0) return null;
  const [first, ...more] = loaded.value;
  return (
    <p class="missing" role="status">
      <strong>{named ? `${run.file}, lost or repaired` : "Lost or repaired"}:</strong> {first}
      {more.length > 0 && `, and ${more.length} more`}. <a href={href}>Data quality</a>
    </p>
  );
}
