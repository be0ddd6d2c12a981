// From the time before to the time after: what each activity adds or takes away, as bars that begin where the one before ended.

import { namedPart } from "../base/colour";
import { duration } from "../base/units";
import type { CauseData, WaterfallData } from "../data/api";

/** Smaller changes stand together. */
const LEAST = 0.005;

function signed(change: number): string {
  return `${change > 0 ? "+" : change < 0 ? "−" : ""}${duration(Math.abs(change))}`;
}

interface Row {
  title: string;
  from: number;
  to: number;
  colour: string;
  idle: boolean;
  words: string;
}

function rowsOf(data: WaterfallData): Row[] {
  const rows: Row[] = [];
  let at = data.before;
  const add = (title: string, cause: Pick<CauseData, "key" | "idle" | "change">, words: string) => {
    rows.push({ title, from: at, to: at + cause.change, colour: namedPart(cause.key, 0), idle: cause.idle, words });
    at += cause.change;
  };
  const least = Math.max(data.before, data.after) * LEAST;
  for (const cause of data.causes.filter((known) => Math.abs(known.change) >= least)) {
    const title = cause.idle ? `Idle: ${cause.title}` : cause.title;
    add(title, cause, `${title}: ${duration(cause.before)} before, ${duration(cause.after)} after`);
  }
  if (at !== data.after && Math.abs(data.after - at) >= 1) add("All else", { key: "other", idle: false, change: data.after - at }, "Changes that are too small to be seen, added up");
  return rows;
}

export function Waterfall({ data, names }: { data: WaterfallData; names: { before: string; after: string } }) {
  if (data.measure === "") return null;
  const rows = rowsOf(data);
  const most = Math.max(1, data.before, data.after, ...rows.map((row) => Math.max(row.from, row.to)));
  const place = (value: number) => `${(Math.max(0, value) / most) * 100}%`;
  const whole = (title: string, time: number, file: string) => (
    <li class="whole" title={file}>
      <span class="name">{title}</span>
      <span class="track"><span class="part" style={{ left: 0, width: place(time) }} /></span>
      <strong class="value">{duration(time)}</strong>
    </li>
  );
  return (
    <section class="bars" aria-label="Waterfall">
      <h2>{data.measure}, by cause</h2>
      <ol class="waterfall">
        {whole("Before", data.before, names.before)}
        {rows.map((row) => (
          <li key={row.title} title={row.words}>
            <span class="name"><i class={row.idle ? "square idle" : "square"} style={{ "--part": row.colour }} />{row.title}</span>
            <span class="track"><span class={row.idle ? "part idle" : "part"} style={{ left: place(Math.min(row.from, row.to)), width: place(Math.abs(row.to - row.from)), "--part": row.colour }} /></span>
            <span class={`value ${row.to > row.from ? "worse" : "better"}`}>{signed(row.to - row.from)}</span>
          </li>
        ))}
        {whole("After", data.after, names.after)}
      </ol>
    </section>
  );
}
