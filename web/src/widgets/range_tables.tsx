// The tables of a selected stretch of time: what ran there by name, and what the other views show, of just that time.

import { duration } from "../base/units";
import type { Page, TableData } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer } from "./answer";
import { Table } from "./table";
import type { Range } from "./timeline_canvas";

const TABLES = [
  ["all", "All spans"],
  ["operators", "Operators"],
  ["kernels", "Kernels"],
  ["functions", "Functions"],
  ["copies", "Copies"],
  ["streams", "Streams"],
  ["threads", "Threads"],
  ["gpu", "GPU"],
] as const;

interface Properties {
  run: number;
  range: Range;
  table: string;
  onTable: (name: string) => void;
  onClose: () => void;
}

export function RangeTables(props: Properties) {
  const { range } = props;
  const [from, to] = [Math.round(range.from), Math.round(range.to)];
  return (
    <section aria-label="Selected range">
      <div class="tabs" role="group" aria-label="Tables of the range">
        <strong>{duration(to - from)} selected</strong>
        {TABLES.map(([name, title]) => (
          <button key={name} type="button" aria-pressed={name === props.table} onClick={() => props.onTable(name)}>{title}</button>
        ))}
        <button type="button" onClick={props.onClose} aria-label="Let go of the range">✕</button>
      </div>
      {props.table === "all" ? <Within {...props} from={from} to={to} /> : <Report {...props} from={from} to={to} />}
    </section>
  );
}

function Within(props: { run: number; from: number; to: number }) {
  const loaded = useAnswer<TableData>(`run/${props.run}/within?from=${props.from}&to=${props.to}`);
  return <Answer loaded={loaded}>{(table) => <Table table={table} />}</Answer>;
}

function Report(props: { run: number; table: string; from: number; to: number }) {
  const loaded = useAnswer<Page>(`run/${props.run}/table/${props.table}?begin=${props.from}&end=${props.to}`);
  return (
    <Answer loaded={loaded}>
      {(page) => (page.sections.length === 0 ? <p class="empty">Nothing of this kind ran in the selected time.</p> : page.sections.map((section) => <Table key={section.key} table={section.table} />))}
    </Answer>
  );
}
