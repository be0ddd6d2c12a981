// Source with what each line cost beside it; the deeper the colour, the more of the file's time.

import { useEffect, useRef } from "preact/hooks";
import { shown } from "../base/units";
import type { Cell, ColumnData, SourceData } from "../data/api";

interface Properties {
  /** The text; without it the lines that have numbers are shown alone. */
  source: SourceData | null;
  columns: readonly ColumnData[];
  /** The numbers of this file. */
  rows: readonly (readonly Cell[])[];
  /** The line to show first. */
  line: number | null;
}

/** Lines around those with numbers that are shown of a long file. */
const AROUND = 12;
const LONG = 1500;
/** What the colour of a line shows: the first of these that was measured. */
const HOT = ["time", "total", "own"] as const;

export function SourceText({ source, columns, rows, line }: Properties) {
  const target = useRef<HTMLTableRowElement>(null);
  useEffect(() => target.current?.scrollIntoView({ block: "center" }), [line, source]);
  const at = columns.findIndex((column) => column.key === "line");
  const shownColumns = columns.map((column, place) => ({ column, place })).filter(({ column }) => column.numeric && column.key !== "line");
  const byLine = new Map(rows.map((row) => [Number(row[at] ?? 0), row]));
  const hot = HOT.map((key) => shownColumns.find(({ column }) => column.key === key)).find((known) => known !== undefined) ?? shownColumns[0];
  const value = (row: readonly Cell[] | undefined) => (hot !== undefined && typeof row?.[hot.place] === "number" ? row[hot.place] as number : 0);
  const most = Math.max(1, ...rows.map(value));
  const count = source === null ? 0 : source.lines.length;
  const known = [...byLine.keys()].toSorted((left, right) => left - right);
  const near = new Set(known.flatMap((number) => Array.from({ length: 2 * AROUND + 1 }, (_, place) => number - AROUND + place)));
  const numbers = source === null ? known : Array.from({ length: count }, (_, place) => place + 1).filter((number) => count <= LONG || near.has(number) || number === line);
  let before = 0;
  return (
    <div class="scroll source" tabIndex={0} role="region" aria-label="Source">
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">Line #</th>
            {shownColumns.map(({ column }) => <th key={column.key} scope="col" class="number" title={column.help}>{column.title}</th>)}
            <th scope="col">{source === null ? "Function" : "Line contents"}</th>
          </tr>
        </thead>
        <tbody>
          {numbers.map((number) => {
            const row = byLine.get(number);
            const gap = number > before + 1 && before > 0;
            before = number;
            const share = value(row) / most;
            return (
              <tr key={number} ref={number === line ? target : undefined} class={`${number === line ? "marked" : ""}${gap ? " gap" : ""}`} data-line={number}>
                <td class="number">{number}</td>
                {shownColumns.map(({ column, place }) => <td key={column.key} class="number">{row?.[place] === undefined || row[place] === null ? "" : shown(row[place] ?? null, column.unit)}</td>)}
                <td class="code" style={share > 0 ? { background: `color-mix(in srgb, var(--heat) ${Math.round(8 + share * 62)}%, transparent)` } : undefined}>
                  <code>{source === null ? String(row?.[columns.findIndex((column) => column.key === "function")] ?? "") : source.lines[number - 1]}</code>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
