// How long calls took: a bar for each bucket of durations, which the server made.

import { part } from "../base/colour";
import { duration, shown } from "../base/units";
import type { BucketData } from "../data/api";

export function Histogram({ buckets }: { buckets: readonly BucketData[] }) {
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count));
  return (
    <section aria-label="Durations">
      <h3>Durations</h3>
      <ol class="histogram">
        {buckets.map((bucket) => (
          <li key={bucket.from} title={`${shown(bucket.count, "count")} calls, ${duration(bucket.time)} together`}>
            <span class="name">{duration(bucket.from)}</span>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width={(bucket.count / most) * 100} height="10" fill={part(0)} /></svg>
            <span class="value">{shown(bucket.count, "count")}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
