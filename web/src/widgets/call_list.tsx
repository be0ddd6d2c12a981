// The slowest calls of something: each leads to its place in the timeline.

import { timelineOf } from "../base/doors";
import { duration } from "../base/units";
import type { CallData } from "../data/api";
import { SourceLink } from "./source_link";

/** The address of another view of the same trace. */
export type To = (view: string, parameters: Record<string, string>) => string;

interface Properties {
  calls: readonly CallData[];
  /** How many there are in all. */
  count: number;
  to: To;
}

/** A panel beside the timeline needs room for both. */
const ROOM = "(min-width: 900px)";

export function CallList({ calls, count, to }: Properties) {
  const beside = matchMedia(ROOM).matches;
  return (
    <section aria-label="Slowest calls">
      <h3>{calls.length < count ? `The ${calls.length} slowest of ${count} calls` : "Slowest calls"}</h3>
      <ol class="calls">
        {calls.map((call) => (
          <li key={call.span}>
            <a href={to("timeline", timelineOf(call, beside))} data-span={call.span}>
              <strong>{duration(call.duration)}</strong> at {duration(call.begin)}
            </a>
            {call.step !== null && <span> step {call.step}</span>}
            <span class="quiet"> {call.process}, {call.track}</span>
            {call.source !== null && <> <SourceLink place={call.source} to={to} /></>}
          </li>
        ))}
      </ol>
    </section>
  );
}
