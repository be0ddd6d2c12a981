// The numbers of one row, large: what a device is judged by at a glance.

import { shown } from "../base/units";
import type { Cell, TableData } from "../data/api";

export function Figures({ table, row, keys, title }: { table: TableData; row: readonly Cell[]; keys: readonly string[]; title: string }) {
  const known = table.columns.map((column, place) => ({ column, place })).filter(({ column }) => keys.includes(column.key));
  return (
    <section class="bars">
      <h2>{title}</h2>
      <div class="figures">
        {known.map(({ column, place }) => (
          <div key={column.key}>
            <span class="quiet">{column.title}</span>
            <strong data-key={column.key}>{shown(row[place] ?? null, column.unit)}</strong>
          </div>
        ))}
      </div>
    </section>
  );
}
