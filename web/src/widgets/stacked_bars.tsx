// Bars of a table of steps or ranks: each row a bar, each column of time a part. The server says the parts add up to the time.

import { namedPart } from "../base/colour";
import { duration } from "../base/units";
import type { TableData } from "../data/api";
import { Swatch } from "./swatch";

const HEIGHT = 170;
const MOST = 200;
/** With more bars than these only some have their name below them, and none its time above. */
const NAMED = 16;

interface Properties {
  table: TableData;
  title?: string;
  /** What a row is. */
  row?: string;
  /** The columns to stack; all times where none are named. */
  parts?: readonly string[];
  /** The address of a stretch of time. */
  onRow?: (begin: number, end: number) => string;
}

export function StackedBars({ table, onRow, title = table.title, row: rowName = "Step", parts: wanted }: Properties) {
  const place = (key: string) => table.columns.findIndex((column) => column.key === key);
  const [time, begin] = [place("time"), place("begin")];
  const parts = table.columns.map((column, index) => ({ column, index })).filter(({ column, index }) => (wanted === undefined ? column.unit === "ns" && index !== time && index !== begin : wanted.includes(column.key)));
  const rows = table.rows.slice(0, MOST);
  const value = (row: readonly unknown[], index: number) => (typeof row[index] === "number" ? row[index] : 0);
  const sum = (row: readonly unknown[]) => parts.reduce((total, { index }) => total + value(row, index), 0);
  const most = Math.max(1, ...rows.map((row) => Math.max(wanted === undefined ? value(row, time) : 0, sum(row))));
  const every = Math.ceil(rows.length / NAMED);
  return (
    <section class="bars">
      <h2>{title}</h2>
      <ul class="legend">
        {parts.map(({ column }, index) => (
          <li key={column.key}><Swatch colour={namedPart(column.key, index)} />{column.title}</li>
        ))}
      </ul>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Chart: ${title}`}>
        <div class="columns" role={onRow === undefined ? "img" : "group"} aria-label={`${title}: ${rows.length} bars, the longest ${duration(most)}`}>
          {rows.map((row, number) => {
            const [from, length] = [value(row, begin), wanted === undefined ? value(row, time) : sum(row)];
            const name = `${rowName} ${String(row[0])}: ${duration(length)}`;
            const words = `${name}\n${parts.map(({ column, index }) => `${column.title}: ${duration(value(row, index))}`).join("\n")}`;
            const bar = (
              <>
                <span class="hidden">{name}</span>
                {rows.length <= NAMED && <span class="quiet" aria-hidden="true">{duration(length)}</span>}
                {parts.map(({ column, index }, place) => (
                  <span key={column.key} class="part" style={{ height: `${(value(row, index) / most) * HEIGHT}px`, background: namedPart(column.key, place) }} />
                )).reverse()}
                <span class="name" aria-hidden="true">{number % every === 0 ? String(row[0]) : ""}</span>
              </>
            );
            return onRow === undefined ? <div key={number} title={words}>{bar}</div> : <a key={number} href={onRow(from, from + length)} title={words}>{bar}</a>;
          })}
        </div>
      </div>
      {table.rows.length > MOST && <p class="quiet">The first {MOST} of {table.rows.length} are drawn.</p>}
    </section>
  );
}
