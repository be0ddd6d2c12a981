// The rows of a table that have most of one column, as bars. Numbers are the table's own.

import { part } from "../base/colour";
import { shown } from "../base/units";
import type { Cell, TableData } from "../data/api";

const COUNTS = [5, 10, 20] as const;

interface Properties {
  table: TableData;
  /** Those of its rows that are drawn. */
  rows: readonly (readonly Cell[])[];
  /** The column; where it is none of numbers, the first of times is taken. */
  column: string | undefined;
  count: number;
  /** The columns that name a row; the first of words where none are said. */
  names?: readonly string[];
  onCount: (count: number) => void;
}

/** The part of a kernel's name that tells it from others; the table has all of it. */
function short(name: string): string {
  return name.replace(/^void /, "").replaceAll(/(at::native::|\(anonymous namespace\)::)/g, "");
}

function value(cell: Cell | undefined): number {
  return typeof cell === "number" ? cell : 0;
}

export function TopChart({ table, rows: drawn, column, count, names = [], onCount }: Properties) {
  const measures = (key: string | undefined) => table.columns.findIndex((known) => known.numeric && known.key === key);
  const most = (place: number) => Math.max(0, ...table.rows.map((row) => value(row[place])));
  const times = table.columns.map((known, place) => ({ known, place })).filter(({ known, place }) => known.unit === "ns" && most(place) > 0);
  // Of device time and processor time, the table's own order says which it is about.
  const own = times.find(({ place }) => value(table.rows[0]?.[place]) === most(place)) ?? times[0];
  const place = measures(column) >= 0 ? measures(column) : (own?.place ?? -1);
  const shape = table.columns[place];
  const named = names.map((key) => table.columns.findIndex((known) => known.key === key)).filter((known) => known >= 0);
  if (named.length === 0) named.push(table.columns.findIndex((known) => !known.numeric));
  if (shape === undefined || named[0] === -1) return null;
  const word = (row: readonly Cell[], known: number) => (table.columns[known]?.key === "file" ? String(row[known] ?? "").replace(/^.*[\\/]/, "") : String(row[known] ?? ""));
  // What has no file has no line either.
  const nameOf = (row: readonly Cell[]) => named.map((known) => word(row, known)).filter((known) => !["", "~", "0"].includes(known)).join(" ").replace(/(\.py) (\d+)$/, "$1:$2");
  const rows = drawn.toSorted((left, right) => value(right[place]) - value(left[place])).slice(0, count).filter((row) => value(row[place]) > 0);
  const largest = Math.max(1, value(rows[0]?.[place]));
  if (rows.length === 0 || table.rows.length < 2) return null;
  return (
    <section class="bars">
      <header>
        <h2>Top {rows.length} by {shape.title}</h2>
        <label>
          Rows{" "}
          <select value={String(count)} onChange={(event) => onCount(Number(event.currentTarget.value))}>
            {COUNTS.map((known) => <option key={known} value={String(known)}>{known}</option>)}
          </select>
        </label>
      </header>
      <ol class="barlist">
        {rows.map((row, number) => (
          <li key={number}>
            <span class="name" title={nameOf(row)}>{short(nameOf(row))}</span>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width={(value(row[place]) / largest) * 100} height="10" fill={part(0)} /></svg>
            <span class="value">{shown(row[place] ?? null, shape.unit)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
