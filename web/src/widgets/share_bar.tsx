// Parts that add up to a whole, as one bar with a legend: a name, an amount and a share in each row of a table.

import { part } from "../base/colour";
import { shown } from "../base/units";
import type { TableData } from "../data/api";

interface Properties {
  table: TableData;
  /** Names in the order of their colours, where another chart has the same; the table's own order otherwise. */
  names?: readonly string[];
}

export function ShareBar({ table, names = [] }: Properties) {
  const name = table.columns.findIndex((column) => !column.numeric);
  const amount = table.columns.findIndex((column) => column.unit === "ns" || column.unit === "bytes");
  const share = table.columns.findIndex((column) => column.unit === "percent");
  const unit = table.columns[amount]?.unit ?? "";
  const rows = table.rows.filter((row) => typeof row[amount] === "number" && row[amount] > 0);
  const words = rows.map((row) => `${String(row[name])} ${shown(row[amount] ?? null, unit)}`);
  const colour = (number: number) => {
    const known = names.indexOf(String(rows[number]?.[name]));
    return part(known >= 0 ? known : names.length + number);
  };
  let left = 0;
  return (
    <section class="bars">
      <h2>{table.title}</h2>
      <svg class="share" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={words.join(", ")}>
        {rows.map((row, number) => {
          const width = typeof row[share] === "number" ? row[share] : 0;
          left += width;
          return <rect key={number} x={left - width} width={width} height="10" fill={colour(number)}><title>{words[number]}</title></rect>;
        })}
      </svg>
      <ul class="legend">
        {rows.map((row, number) => (
          <li key={number}>
            <svg width="10" height="10" aria-hidden="true"><rect width="10" height="10" fill={colour(number)} /></svg> {String(row[name])}{" "}
            <strong>{shown(row[amount] ?? null, unit)}</strong> {shown(row[share] ?? null, "percent")}
          </li>
        ))}
      </ul>
    </section>
  );
}
