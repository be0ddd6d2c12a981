// A table whose rows are a tree: a column says how deep each is. Rows fold with a click, or with the arrow keys as trees do.

import { useState } from "preact/hooks";
import { doorway, openDoor } from "../base/doors";
import { shown } from "../base/units";
import type { Cell, TableData } from "../data/api";
import { CopyButton } from "./copy_button";

interface Properties {
  table: TableData;
  /** The column with the depth, which is not shown itself. */
  depth: string;
  filter: string;
  onFilter: (text: string) => void;
}

export function TreeTable({ table, depth, filter, onFilter }: Properties) {
  const [closed, setClosed] = useState<ReadonlySet<number>>(new Set());
  const at = table.columns.findIndex((column) => column.key === depth);
  const deep = (row: readonly Cell[] | undefined) => (row === undefined ? -1 : Number(row[at] ?? 0));
  const wanted = filter.toLowerCase();
  // A row is shown when it or one below it is wanted, and nothing around it is folded.
  const matched = table.rows.map((row) => wanted === "" || row.some((cell) => typeof cell === "string" && cell.toLowerCase().includes(wanted)));
  for (let place = table.rows.length - 1; place > 0; place--) {
    if (!matched[place]) continue;
    for (let outer = place - 1, level = deep(table.rows[place]); outer >= 0 && level > 0; outer--) {
      if (deep(table.rows[outer]) < level) {
        level = deep(table.rows[outer]);
        matched[outer] = true;
      }
    }
  }
  const visible: number[] = [];
  let hiddenBelow = Infinity;
  table.rows.forEach((row, place) => {
    if (deep(row) > hiddenBelow) return;
    hiddenBelow = closed.has(place) ? deep(row) : Infinity;
    if (matched[place] === true) visible.push(place);
  });
  const fold = (place: number, close: boolean) => {
    const next = new Set(closed);
    if (close) next.add(place);
    else next.delete(place);
    setClosed(next);
  };
  const pressed = (event: KeyboardEvent, place: number, parent: boolean) => {
    const row = event.currentTarget as HTMLElement;
    const focus = (other: Element | null) => other instanceof HTMLElement && other.focus();
    if (event.key === "ArrowDown") focus(row.nextElementSibling);
    else if (event.key === "ArrowUp") focus(row.previousElementSibling);
    else if (event.key === "ArrowLeft" && parent) fold(place, true);
    else if (event.key === "ArrowRight" && parent) fold(place, false);
    else if (event.key === "Enter" && event.target === row && table.doors[place]) openDoor(table.doors[place] ?? "");
    else return;
    event.preventDefault();
  };
  return (
    <section class="table">
      <header>
        <h2>{table.title}</h2>
        <span class="quiet">{visible.length} of {table.rows.length} rows</span>
        <input type="search" placeholder="Filter" aria-label={`Filter ${table.title}`} value={filter} onInput={(event) => onFilter(event.currentTarget.value)} />
        <button type="button" onClick={() => setClosed(new Set(table.rows.flatMap((row, place) => (deep(table.rows[place + 1]) > deep(row) ? [place] : []))))}>Fold all</button>
        <button type="button" onClick={() => setClosed(new Set())}>Unfold all</button>
        <CopyButton columns={table.columns} rows={visible.map((place) => table.rows[place] ?? [])} />
      </header>
      <div class="scroll" tabIndex={0} role="region" aria-label={table.title}>
        <table role="treegrid" aria-label={table.title}>
          <thead>
            <tr>{table.columns.map((column, place) => place !== at && <th key={column.key} scope="col" class={column.numeric ? "number" : ""} title={column.help}>{column.title}</th>)}</tr>
          </thead>
          <tbody>
            {visible.map((place, number) => {
              const row = table.rows[place] ?? [];
              const parent = deep(table.rows[place + 1]) > deep(row);
              return (
                <tr key={place} tabIndex={number === 0 ? 0 : -1} aria-level={deep(row) + 1} aria-expanded={parent ? !closed.has(place) : undefined} onKeyDown={(event) => pressed(event, place, parent)} onClick={() => parent && fold(place, !closed.has(place))}>
                  {row.map((cell, column) => {
                    if (column === at) return null;
                    const shape = table.columns[column];
                    if (column > 0) return <td key={column} class={shape?.numeric === true ? "number" : ""}>{shown(cell, shape?.unit ?? "")}</td>;
                    return (
                      <td key={column} class="branch" style={{ paddingLeft: `${6 + deep(row) * 16}px` }}>
                        <span aria-hidden="true">{parent ? (closed.has(place) ? "▸ " : "▾ ") : "· "}</span>
                        {table.doors[place] ? <a class="door" tabIndex={-1} data-door={table.doors[place]} href={doorway(table.doors[place] ?? "")} onClick={(event) => event.stopPropagation()}>{shown(cell, shape?.unit ?? "")}</a> : shown(cell, shape?.unit ?? "")}
                      </td>
                    );
                  })}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
