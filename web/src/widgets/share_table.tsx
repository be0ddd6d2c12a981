// Parts that add up to a whole: one bar, and a table that is its legend. A device column makes a bar for each device.

import { namedPart } from "../base/colour";
import { causeTitle } from "../base/meaning";
import { shown } from "../base/units";
import type { Cell, TableData } from "../data/api";
import { Table } from "./table";

interface Properties {
  table: TableData;
  /** Names in the order of their colours, where another chart has the same; the table's own order otherwise. */
  names?: readonly string[];
}

export function ShareTable({ table, names = [] }: Properties) {
  const find = (wanted: (column: TableData["columns"][number]) => boolean) => table.columns.findIndex(wanted);
  const device = find((column) => column.key === "device");
  const name = find((column) => !column.numeric && column.key !== "device");
  const amount = find((column) => column.unit === "ns" || column.unit === "bytes");
  const share = find((column) => column.unit === "percent");
  const unit = table.columns[amount]?.unit ?? "";
  const known = [...new Set([...names, ...table.rows.map((row) => String(row[name]))])];
  const colour = (row: readonly Cell[]) => namedPart(String(row[name]), known.indexOf(String(row[name])));
  const devices = device < 0 ? [null] : [...new Set(table.rows.map((row) => row[device] ?? null))];
  const bar = (of: Cell) => {
    const rows = table.rows.filter((row) => device < 0 || row[device] === of);
    const words = rows.map((row) => `${causeTitle(String(row[name]))} ${shown(row[amount] ?? null, unit)}`);
    let left = 0;
    return (
      <svg class="share" key={String(of)} viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={`${devices.length > 1 ? `${String(of)}: ` : ""}${words.join(", ")}`}>
        {rows.map((row, number) => {
          const width = typeof row[share] === "number" ? row[share] : 0;
          left += width;
          return <rect key={number} x={left - width} width={width} height="10" fill={colour(row)}><title>{words[number]}</title></rect>;
        })}
      </svg>
    );
  };
  return <Table table={table} lead={devices.map(bar)} swatch={{ place: name, colour }} />;
}
