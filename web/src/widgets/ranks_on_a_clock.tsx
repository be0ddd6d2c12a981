// The ranks of a job in aligned timelines, each where its clock says it was.

import { useState } from "preact/hooks";
import type { ClockData, VerdictData } from "../data/api";
import { ChosenRange, useAnswer } from "../data/server";
import { AlignedTimelines } from "./aligned_timelines";
import { Answer } from "./answer";

/** So many are shown; each has its own tracks. */
const MOST = 8;
const MARGIN = 0.1;

interface Properties {
  run: number;
  to: (view: string, parameters: Record<string, string>) => string;
}

/** They are read when somebody wants to see them: there may be many. */
export function RanksOnAClock(props: Properties) {
  const [open, setOpen] = useState(false);
  return (
    <details class="bars" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>All ranks on one clock</summary>
      {open && <ChosenRange.Provider value={null}><Ranks {...props} /></ChosenRange.Provider>}
    </details>
  );
}

function Ranks(props: Properties) {
  const clocks = useAnswer<ClockData[]>(`clocks?run=${props.run}`);
  const verdict = useAnswer<VerdictData>(`run/${props.run}/verdict`);
  return <Answer loaded={clocks}>{(known) => <Answer loaded={verdict}>{(step) => <Rows {...props} clocks={known} step={step} />}</Answer>}</Answer>;
}

function Rows({ run, to, clocks, step }: Properties & { clocks: readonly ClockData[]; step: VerdictData }) {
  const known = clocks.filter((clock) => clock.offset !== null);
  const own = known.find((clock) => clock.run === run);
  if (own === undefined || known.length < 2) return <p class="empty">The traces do not say what time it was when they were recorded, so they cannot be put on one clock.</p>;
  // The beginning of the shown rank's typical step is where all of them have their zero.
  const zero = (clock: ClockData) => step.begin + (own.offset ?? 0) - (clock.offset ?? 0);
  const rows = known.slice(0, MOST).map((clock) => ({ run: clock.run, title: clock.name, zero: zero(clock) }));
  const margin = (step.end - step.begin) * MARGIN;
  return (
    <>
      <p class="quiet">
        {step.step === null ? "The recording" : `Step ${step.step}`} of {own.name}, and what the others did meanwhile. Clocks of different machines may differ by milliseconds.
        {known.length > MOST && ` The first ${MOST} of ${known.length} ranks are shown.`}
        {clocks.length > known.length && ` ${clocks.length - known.length} without a known time are left out.`}
      </p>
      <AlignedTimelines rows={rows} seen={{ from: -margin, to: step.end - step.begin + margin }} height={180} to={to} />
    </>
  );
}
