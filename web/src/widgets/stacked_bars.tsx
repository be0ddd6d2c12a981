// Bars of a table of steps or ranks: each row a bar, each column of time a part. The server says the parts add up to the time.

import { part } from "../base/colour";
import { duration } from "../base/units";
import type { TableData } from "../data/api";

const HEIGHT = 160;
const MOST = 200;

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
  const width = Math.max(4, Math.min(60, 900 / Math.max(1, rows.length)));
  return (
    <section class="bars">
      <h2>{title}</h2>
      <ul class="legend">
        {parts.map(({ column }, index) => (
          <li key={column.key}>
            <svg width="10" height="10" aria-hidden="true"><rect width="10" height="10" fill={part(index)} /></svg> {column.title}
          </li>
        ))}
      </ul>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Chart: ${title}`}>
        <svg width={rows.length * width} height={HEIGHT + 16} role={onRow === undefined ? "img" : "group"} aria-label={`${title}: ${rows.length} bars, the longest ${duration(most)}`}>
          {rows.map((row, number) => {
            let top = HEIGHT;
            const [from, length] = [value(row, begin), wanted === undefined ? value(row, time) : sum(row)];
            const words = parts.map(({ column, index }) => `${column.title}: ${duration(value(row, index))}`);
            const bar = (
              <>
                <title>{`${rowName} ${String(row[0])}: ${duration(length)}\n${words.join("\n")}`}</title>
                {parts.map(({ column, index }, colour) => {
                  const height = (value(row, index) / most) * HEIGHT;
                  top -= height;
                  return <rect key={column.key} x={number * width + 1} y={top} width={width - 2} height={Math.max(0, height)} fill={part(colour)} />;
                })}
                <text x={number * width + width / 2} y={HEIGHT + 12} text-anchor="middle">{width >= 18 ? String(row[0]) : ""}</text>
              </>
            );
            return onRow === undefined ? <g key={number}>{bar}</g> : <a key={number} href={onRow(from, from + length)} aria-label={`${rowName} ${String(row[0])}`}>{bar}</a>;
          })}
        </svg>
      </div>
      {table.rows.length > MOST && <p class="quiet">The first {MOST} of {table.rows.length} are drawn.</p>}
    </section>
  );
}
