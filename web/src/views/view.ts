// What a view is given. Views know the address and the server, and nothing of each other.

import type { Run } from "../data/api";

export interface ViewProperties {
  /** The trace that is shown. */
  run: Run;
  /** All there are. */
  runs: readonly Run[];
  /** What the address says besides. */
  parameters: Record<string, string>;
  /** Changes the address; `undefined` takes a parameter out. `keep` makes an entry in the history. */
  change: (parameters: Record<string, string | undefined>, keep?: boolean) => void;
  /** The address of another view of the same trace. */
  to: (view: string, parameters?: Record<string, string>) => string;
}
