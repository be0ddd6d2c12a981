// The side panel: what a row of a table stands for, with all that is known about it. It is open while the address says so.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { read } from "../base/address";
import { closeDoor, questionOf } from "../base/doors";
import { causeTitle } from "../base/meaning";
import { selected } from "../base/ranges";
import { duration, shown } from "../base/units";
import type { TableData, ThingData } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer } from "./answer";
import { CallList, Related, StretchLink, type To } from "./call_list";
import { CallStacks } from "./call_stacks";
import { Histogram } from "./histogram";
import { SourceLink } from "./source_link";
import { StepTrend } from "./step_trend";
import { Table } from "./table";

interface Properties {
  run: number;
  parameters: Record<string, string>;
  to: To;
}

/** Keys that move inside the panel, and must not move the view beside it. */
const OWN_KEYS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End"];

export function SidePanel(props: Properties) {
  const open = props.parameters["open"];
  if (open === undefined || open === "") return null;
  return <Opened {...props} open={open} />;
}

/** Where the focus goes when the panel closes: to what had it before, or to the row that the panel is about. */
function giveBack(before: Element | null, door: string): void {
  const row = () => [...document.querySelectorAll<HTMLElement>("a[data-door]")].find((known) => known.dataset["door"] === door);
  const target = before instanceof HTMLElement && before.isConnected && before !== document.body ? before : row();
  target?.focus();
}

function Opened(props: Properties & { open: string }) {
  const range = selected(props.parameters);
  const panel = useRef<HTMLElement>(null);
  const latest = useRef(props.open);
  latest.current = props.open;
  const loaded = useAnswer<ThingData>(`run/${props.run}/thing?${questionOf(props.open, range)}`);
  useEffect(() => {
    const before = document.activeElement;
    return () => giveBack(before, latest.current);
  }, []);
  // A panel that shows another thing begins at its top again.
  useEffect(() => panel.current?.querySelector<HTMLElement>("h2")?.focus(), [props.open]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      // In the timeline the key lets go of the span; fields and charts have their own use of it.
      const elsewhere = read().view === "timeline" || (event.target instanceof Element && event.target.closest(".canvas, input, select, dialog, .panel") !== null);
      if (event.key === "Escape" && !elsewhere && !event.defaultPrevented) closeDoor();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "Escape") closeDoor();
    if (event.key === "Escape" || OWN_KEYS.includes(event.key)) event.stopPropagation();
  };
  const name = new URLSearchParams(props.open).get("name") ?? "Details";
  return (
    <aside ref={panel} class="panel" aria-labelledby="panel-name" onKeyDown={pressed}>
      <header>
        <h2 id="panel-name" tabIndex={-1}>{loaded.state === "ready" ? loaded.value.name : name}</h2>
        <button type="button" onClick={closeDoor} aria-label="Close the panel">✕</button>
      </header>
      {range !== null && <p class="quiet">Of the selected {duration(range.end - range.begin)}, from {duration(range.begin)}.</p>}
      <Answer loaded={loaded}>{(thing) => <Thing thing={thing} to={props.to} />}</Answer>
    </aside>
  );
}

function Thing({ thing, to }: { thing: ThingData; to: To }) {
  return (
    <>
      <p class="quiet">{thing.kind}{thing.source !== null && <> at <SourceLink place={thing.source} to={to} /></>}</p>
      {thing.begin !== null && thing.end !== null && <StretchLink begin={thing.begin} end={thing.end} to={to} />}
      <Facts row={thing.row}>
        {thing.step_share !== null && (
          <>
            <dt title="The part of the steps' time in which one of its calls ran.">Share of steps</dt>
            <dd data-key="step_share">{shown(thing.step_share, "percent")}</dd>
          </>
        )}
      </Facts>
      {thing.related.length > 0 && <Related calls={thing.related} to={to} />}
      {thing.slowest.length > 0 && <CallList calls={thing.slowest} count={thing.count} to={to} />}
      {thing.histogram.length > 0 && <Histogram buckets={thing.histogram} />}
      {thing.steps.length > 1 && <StepTrend steps={thing.steps} />}
      {thing.stacks.length > 0 && <CallStacks stacks={thing.stacks} to={to} />}
      {thing.tables.map((table) => <Table key={table.title} table={table} />)}
    </>
  );
}

/** The row of its table, a line for each column. */
function Facts({ row, children }: { row: TableData; children: ComponentChildren }) {
  const cells = row.rows[0] ?? [];
  const columns = row.columns.map((column, place) => ({ column, cell: cells[place] ?? null }));
  const told = columns.filter(({ column, cell }) => cell !== null && column.key !== "name");
  return (
    <dl>
      {told.map(({ column, cell }) => [
        <dt key={`${column.key} title`} title={column.help}>{column.title}</dt>,
        <dd key={column.key} data-key={column.key} data-value={cell ?? undefined}>{column.key === "cause" && typeof cell === "string" ? causeTitle(cell) : shown(cell, column.unit)}</dd>,
      ])}
      {children}
    </dl>
  );
}
