// The slowest calls of something: each leads to its place in the timeline.

import { timelineAround, timelineOf } from "../base/doors";
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

/** Calls that lead to the timeline. */
function Calls({ calls, to }: { calls: readonly CallData[]; to: To }) {
  const beside = matchMedia(ROOM).matches;
  return (
    <ol class="calls">
      {calls.map((call, place) => (
        <li key={place}>
          {call.what !== "" && <>{call.what} {call.name}: </>}
          <a href={to("timeline", timelineOf(call, beside))} data-span={call.span ?? undefined}>
            <strong>{duration(call.duration)}</strong> at {duration(call.begin)}
          </a>
          {call.step !== null && <span> step {call.step}</span>}
          {call.track !== "" && <span class="quiet" title={call.process}> {call.track}</span>}
          {call.source !== null && <> <SourceLink place={call.source} to={to} /></>}
        </li>
      ))}
    </ol>
  );
}

export function CallList({ calls, count, to }: Properties) {
  return (
    <section aria-label="Slowest calls">
      <h3>{calls.length < count ? `The ${calls.length} slowest of ${count} calls` : "Slowest calls"}</h3>
      <Calls calls={calls} to={to} />
    </section>
  );
}

/** Spans that have to do with something, each with what. */
export function Related({ calls, to }: { calls: readonly CallData[]; to: To }) {
  return (
    <section aria-label="In the timeline">
      <h3>In the timeline</h3>
      <Calls calls={calls} to={to} />
    </section>
  );
}

/** A link to a stretch of time, with some of what is around it. */
export function StretchLink({ begin, end, to }: { begin: number; end: number; to: To }) {
  return (
    <p>
      <a data-stretch href={to("timeline", timelineAround(begin, end, matchMedia(ROOM).matches))}>Show in the timeline</a>: {duration(end - begin)} from {duration(begin)}
    </p>
  );
}
