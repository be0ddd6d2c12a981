// The tables of a selected stretch of time, on all tracks or some: what ran there by name, what the other views show, and the flame graph of it.

import { useMemo } from "preact/hooks";
import { flameLayout } from "../base/flame_layout";
import { duration } from "../base/units";
import type { FlameData, Page, TableData } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer } from "./answer";
import { Table } from "./table";
import { FlameCanvas } from "./flame_canvas";
import type { Area } from "./timeline_canvas";

const TABLES = [
  ["all", "All spans"],
  ["operators", "Operators"],
  ["kernels", "Kernels"],
  ["functions", "Functions"],
  ["copies", "Copies"],
  ["streams", "Streams"],
  ["threads", "Threads"],
  ["gpu", "GPU"],
  ["flame", "Flame graph"],
] as const;

interface Properties {
  run: number;
  range: Area;
  table: string;
  onTable: (name: string) => void;
  /** The flame graph of this time in its own view. */
  flameHref: string;
  onClose: () => void;
}

export function RangeTables(props: Properties) {
  const { range } = props;
  const [from, to] = [Math.round(range.from), Math.round(range.to)];
  const part = `begin=${from}&end=${to}${range.tracks === null ? "" : `&tracks=${range.tracks.join(",")}`}`;
  // What a row of all tracks stands for is more than what a row of some does.
  const own = (table: TableData) => (range.tracks === null ? table : { ...table, doors: [] });
  return (
    <section aria-label="Selected range">
      <div class="tabs" role="group" aria-label="Tables of the range">
        <strong>{duration(to - from)} selected{range.tracks !== null && ` on ${range.tracks.length} ${range.tracks.length === 1 ? "track" : "tracks"}`}</strong>
        {TABLES.map(([name, title]) => (
          <button key={name} type="button" aria-pressed={name === props.table} onClick={() => props.onTable(name)}>{title}</button>
        ))}
        <button type="button" onClick={props.onClose} aria-label="Clear the range">✕</button>
      </div>
      {props.table === "all" ? (
        <Within run={props.run} call={`from=${from}&to=${to}${range.tracks === null ? "" : `&${part}`}`} own={own} />
      ) : props.table === "flame" ? (
        <Flame run={props.run} part={part} href={props.flameHref} />
      ) : (
        <Report run={props.run} table={props.table} part={part} own={own} />
      )}
    </section>
  );
}

interface Of {
  run: number;
  own: (table: TableData) => TableData;
}

function Within(props: Of & { call: string }) {
  const loaded = useAnswer<TableData>(`run/${props.run}/within?${props.call}`);
  return <Answer loaded={loaded}>{(table) => <Table table={props.own(table)} />}</Answer>;
}

function Report(props: Of & { table: string; part: string }) {
  const loaded = useAnswer<Page>(`run/${props.run}/table/${props.table}?${props.part}`);
  return (
    <Answer loaded={loaded}>
      {(page) => (page.sections.length === 0 ? <p class="empty">Nothing of this kind ran in the selected time.</p> : page.sections.map((section) => <Table key={section.key} table={props.own(section.table)} />))}
    </Answer>
  );
}

function Flame(props: { run: number; part: string; href: string }) {
  const loaded = useAnswer<FlameData>(`run/${props.run}/flame?${props.part}`);
  return (
    <Answer loaded={loaded}>
      {(data) => (data.parent.length === 0 ? <p class="empty">No calls were recorded in the selected time.</p> : <Calls data={data} href={props.href} />)}
    </Answer>
  );
}

function Calls({ data, href }: { data: FlameData; href: string }) {
  const layout = useMemo(() => flameLayout(data.parent, data.total_time), [data]);
  return (
    <>
      <p class="tabs">{duration(layout.total)} in {data.source} <a href={href}>Open as a view</a></p>
      <FlameCanvas data={data} layout={layout} label="Flame graph of the selected time" />
    </>
  );
}
