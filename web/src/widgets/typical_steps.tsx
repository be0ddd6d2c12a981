// The typical step of each of two traces in aligned timelines; where there are no steps, their recordings.

import type { Run, VerdictData } from "../data/api";
import { ChosenRange, useAnswer } from "../data/server";
import { duration } from "../base/units";
import { AlignedTimelines, type Aligned } from "./aligned_timelines";
import { Answer } from "./answer";

/** Of the longer one's time, so much is seen before and after. */
const MARGIN = 0.03;

interface Properties {
  before: Run;
  after: Run;
  to: (view: string, parameters: Record<string, string>) => string;
}

/** A range that is selected belongs to one trace; this is about two. */
export function TypicalSteps(props: Properties) {
  return <ChosenRange.Provider value={null}><Both {...props} /></ChosenRange.Provider>;
}

function Both(props: Properties) {
  const before = useAnswer<VerdictData>(`run/${props.before.id}/verdict`);
  const after = useAnswer<VerdictData>(`run/${props.after.id}/verdict`);
  return <Answer loaded={before}>{(first) => <Answer loaded={after}>{(second) => <Steps {...props} first={first} second={second} />}</Answer>}</Answer>;
}

function Steps(props: Properties & { first: VerdictData; second: VerdictData }) {
  const { first, second } = props;
  const row = (name: string, run: Run, verdict: VerdictData): Aligned => {
    const what = verdict.step === null ? "the recording" : `step ${verdict.step}`;
    return { run: run.id, title: `${name}: ${run.file}, ${what}, ${duration(verdict.end - verdict.begin)}`, zero: verdict.begin };
  };
  const longest = Math.max(1, first.end - first.begin, second.end - second.begin);
  return (
    <section class="bars" aria-label="Typical steps">
      <h2>A typical step of each <span class="quiet">on one scale; what you move in one moves in both</span></h2>
      <AlignedTimelines rows={[row("Before", props.before, first), row("After", props.after, second)]} seen={{ from: -longest * MARGIN, to: longest * (1 + MARGIN) }} height={260} to={props.to} />
    </section>
  );
}
