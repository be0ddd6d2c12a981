// What each device is judged by, large: the numbers of its row in the table of devices.

import { shown } from "../base/units";
import type { TableData } from "../data/api";

const KEYS = ["busy_share", "utilisation", "sm_efficiency", "occupancy", "tensor_cores"];

export function DeviceFigures({ table }: { table: TableData }) {
  const known = table.columns.map((column, place) => ({ column, place })).filter(({ column }) => KEYS.includes(column.key));
  return (
    <>
      {table.rows.map((row) => (
        <section class="bars all" key={String(row[0])}>
          <h2>GPU {String(row[0])} <span class="quiet">{row[1] === null ? "" : String(row[1])}</span></h2>
          <div class="figures">
            {known.map(({ column, place }) => (
              <div key={column.key} title={column.help}>
                <span class="quiet">{column.title}</span>
                <strong data-key={column.key}>{shown(row[place] ?? null, column.unit)}</strong>
              </div>
            ))}
          </div>
        </section>
      ))}
    </>
  );
}
