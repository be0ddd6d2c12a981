// A table: sorted by any column, filtered by a text, copied as CSV. Long ones are drawn as far as they are scrolled.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { doorway, openDoor } from "../base/doors";
import { causeTitle } from "../base/meaning";
import { moment, shown } from "../base/units";
import type { Cell, TableData } from "../data/api";
import { CopyButton } from "./copy_button";
import { Swatch } from "./swatch";

const STEP = 200;
/** So few rows need no filter. */
const FEW = 12;
/** Columns of moments rather than amounts: a share of the largest says nothing. */
const MOMENTS = ["at", "begin", "allocated_at", "released_at"];
/** Values that differ by less than this part of the largest have no bars: all would be full. */
const ALIKE = 0.1;

export interface Sorting {
  key: string;
  down: boolean;
}

interface Properties {
  table: TableData;
  /** What is in the address, where the table has a place of its own there. */
  sorting?: Sorting | null;
  filter?: string;
  onSort?: (sorting: Sorting) => void;
  onFilter?: (text: string) => void;
  onRow?: (row: readonly Cell[]) => void;
  /** What is drawn between the title and the rows. */
  lead?: ComponentChildren;
  /** The colour that a row has in it, and the column to show it in. */
  swatch?: { place: number; colour: (row: readonly Cell[]) => string };
}

/** Columns that say by how much something changed: more is worse. */
const CHANGES = ["change", "change_percent"];

/** What is worth a colour. Tables without verdicts list nothing else. */
const CERTAIN: readonly (Cell | undefined)[] = ["change", "new", "gone", undefined];

function tone(key: string, cell: Cell, verdict: Cell | undefined): string {
  if (!CHANGES.includes(key) || typeof cell !== "number" || cell === 0 || !CERTAIN.includes(verdict)) return "";
  return cell > 0 ? " worse" : " better";
}

/** The rows that have a text in one of their words. */
export function filtered(table: TableData, text: string): readonly (readonly Cell[])[] {
  const wanted = text.toLowerCase();
  return wanted === "" ? table.rows : table.rows.filter((row) => row.some((cell) => typeof cell === "string" && cell.toLowerCase().includes(wanted)));
}

function compare(left: Cell, right: Cell): number {
  if (left === null || right === null) return left === right ? 0 : left === null ? -1 : 1;
  if (typeof left === "number" && typeof right === "number") return left - right;
  return String(left).localeCompare(String(right), "en", { numeric: true });
}

/** The column whose text is the link to what a row stands for. */
function naming(table: TableData): number {
  const named = table.columns.findIndex((column) => ["name", "function", "culprit"].includes(column.key));
  return named >= 0 ? named : Math.max(0, table.columns.findIndex((column) => !column.numeric));
}

/** The arrow keys go from one row that leads somewhere to the next. */
function walk(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined || !(event.currentTarget instanceof Element) || !(event.target instanceof Element)) return;
  const doors = [...event.currentTarget.querySelectorAll<Element>("a.door")];
  const next = doors[doors.indexOf(event.target) + step];
  if (!event.target.classList.contains("door") || !(next instanceof HTMLElement)) return;
  event.preventDefault();
  event.stopPropagation();
  next.focus();
}

export function Table(props: Properties) {
  const { table } = props;
  const [own, setOwn] = useState<Sorting | null>(null);
  const [ownFilter, setOwnFilter] = useState("");
  const [limit, setLimit] = useState(STEP);
  const sorting = props.onSort === undefined ? own : (props.sorting ?? null);
  const filter = props.onFilter === undefined ? ownFilter : (props.filter ?? "");
  const rows = useMemo(() => {
    const kept = filtered(table, filter);
    const place = sorting === null ? -1 : table.columns.findIndex((column) => column.key === sorting.key);
    if (place < 0 || sorting === null) return kept;
    const sign = sorting.down ? -1 : 1;
    return kept.toSorted((left, right) => sign * compare(left[place] ?? null, right[place] ?? null));
  }, [table, filter, sorting?.key, sorting?.down]);
  // A bar behind each number shows its share of the largest.
  const largest = useMemo(
    () =>
      table.columns.map((column, place) => {
        if ((column.unit !== "ns" && column.unit !== "bytes") || MOMENTS.includes(column.key)) return 0;
        const values = table.rows.map((row) => (typeof row[place] === "number" ? row[place] : 0));
        const most = Math.max(0, ...values);
        return Math.min(...values) > most * (1 - ALIKE) ? 0 : most;
      }),
    [table],
  );
  const verdict = table.columns.findIndex((column) => column.key === "verdict");
  const units = useMemo(() => new Map<readonly Cell[], string>(table.rows.map((row, place) => [row, table.units[place] ?? ""])), [table]);
  const doors = useMemo(() => new Map<readonly Cell[], string>(table.rows.map((row, place) => [row, table.doors[place] ?? ""])), [table]);
  const named = naming(table);
  const clicked = (event: MouseEvent, row: readonly Cell[]) => {
    const door = doors.get(row) ?? "";
    if (door === "") props.onRow?.(row);
    // Links do it themselves, and who marks a text means to copy it.
    else if (event.target instanceof Element && event.target.closest("a") === null && getSelection()?.isCollapsed !== false) openDoor(door);
  };
  const sort = (key: string, numeric: boolean) => {
    const next = { key, down: sorting?.key === key ? !sorting.down : numeric };
    (props.onSort ?? setOwn)(next);
  };
  return (
    <section class="table">
      <header>
        <h2>{table.title}</h2>
        <span class="quiet">
          {rows.length === table.rows.length ? `${rows.length} ${rows.length === 1 ? "row" : "rows"}` : `${rows.length} of ${table.rows.length} rows`}
        </span>
        {(props.onFilter !== undefined || table.rows.length > FEW) && <input type="search" placeholder="Filter" aria-label={`Filter ${table.title}`} value={filter} onInput={(event) => (props.onFilter ?? setOwnFilter)(event.currentTarget.value)} />}
        <CopyButton columns={table.columns} rows={rows} />
      </header>
      {props.lead}
      <div class="scroll" tabIndex={0} role="region" aria-label={table.title}>
        <table>
          <thead>
            <tr>
              {table.columns.map((column) => (
                <th key={column.key} class={column.numeric ? "number" : ""} aria-sort={sorting?.key !== column.key ? "none" : sorting.down ? "descending" : "ascending"}>
                  <button type="button" data-key={column.key} title={column.help} onClick={() => sort(column.key, column.numeric)}>
                    {column.title}
                    <span aria-hidden="true">{sorting?.key !== column.key ? "" : sorting.down ? " ▾" : " ▴"}</span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody onKeyDown={walk}>
            {rows.slice(0, limit).map((row, number) => (
              <tr key={number} class={props.onRow === undefined && !doors.get(row) ? "" : "link"} onClick={(event) => clicked(event, row)}>
                {row.map((cell, place) => {
                  const column = table.columns[place];
                  const text = typeof cell === "number" && MOMENTS.includes(column?.key ?? "") ? moment(cell) : column?.key === "cause" && typeof cell === "string" ? causeTitle(cell) : shown(cell, column?.unit || units.get(row) || "");
                  const most = largest[place] ?? 0;
                  const share = most > 0 && typeof cell === "number" ? Math.max(0, (cell / most) * 100) : 0;
                  return (
                    <td key={place} class={column?.numeric === true ? `number${tone(column.key, cell, row[verdict])}` : ""} title={typeof cell === "string" && cell.length > 60 ? cell : undefined} style={share > 0 ? { backgroundSize: `${share}% 100%` } : undefined}>
                      {props.swatch?.place === place && <Swatch colour={props.swatch.colour(row)} />}
                      {place === named && doors.get(row) ? <a class="door" data-door={doors.get(row)} href={doorway(doors.get(row) ?? "")}>{text}</a> : text}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > limit && (
        <button type="button" onClick={() => setLimit(limit + STEP * 5)}>
          Show more ({rows.length - limit} left)
        </button>
      )}
    </section>
  );
}
