// Flame graph: all calls of a path added up (left heavy), in order of time, around one function, or against another trace.

import { useMemo } from "preact/hooks";
import { compared } from "../base/compared";
import { flameLayout } from "../base/flame_layout";
import { duration, percent } from "../base/units";
import type { FlameData, SandwichData, TableData } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { FlameCanvas, matches } from "../widgets/flame_canvas";
import { PairChoice } from "../widgets/pair_choice";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

const ORDERS = [
  ["heavy", "Left heavy"],
  ["time", "Time order"],
  ["sandwich", "Sandwich"],
  ["compared", "Compared"],
] as const;

export function Flame(props: ViewProperties) {
  const order = ORDERS.find(([name]) => name === props.parameters["order"])?.[0] ?? "heavy";
  const pair = compared(props.runs, props.run, props.parameters);
  const run = `run/${props.run.id}`;
  const thread = props.parameters["thread"];
  const calls = { heavy: `${run}/flame`, sandwich: `${run}/flame`, time: `${run}/flame/time${thread === undefined ? "" : `?thread=${thread}`}`, compared: pair === null ? null : `compare/flame?before=${pair.before.id}&after=${pair.after.id}` };
  const loaded = useAnswer<FlameData>(calls[order]);
  return (
    <>
      <div class="tabs" role="group" aria-label="Order of calls">
        {ORDERS.map(([name, title]) => (
          <button key={name} type="button" aria-pressed={name === order} onClick={() => props.change({ order: name, node: undefined })}>{title}</button>
        ))}
        {order === "compared" && pair !== null && <PairChoice runs={props.runs} pair={pair} onPair={(chosen) => props.change({ ...chosen, node: undefined })} />}
      </div>
      {order === "compared" && pair === null ? (
        <Empty record="hotspan view before.hotspan after.hotspan" />
      ) : (
        <Answer loaded={loaded}>
          {(data) => (data.parent.length === 0 ? <Empty record={data.record} /> : order === "sandwich" ? <Sandwich {...props} data={data} /> : <Graph {...props} data={data} />)}
        </Answer>
      )}
    </>
  );
}

function SearchField(props: ViewProperties) {
  const text = props.parameters["search"] ?? "";
  return <input type="search" placeholder="Search functions" aria-label="Search functions" value={text} onInput={(event) => props.change({ search: event.currentTarget.value === "" ? undefined : event.currentTarget.value }, false)} />;
}

function Graph(props: ViewProperties & { data: FlameData }) {
  const { data } = props;
  const compared = data.before.length > 0;
  const asBefore = compared && props.parameters["width"] === "before";
  const layout = useMemo(() => flameLayout(data.parent, asBefore ? data.before : data.total_time, data.begin), [data, asBefore]);
  const wanted = (props.parameters["search"] ?? "").toLowerCase();
  const focus = Number(props.parameters["node"] ?? -1);
  // Time below a call that matched is not counted again.
  const found = useMemo(() => {
    let sum = 0;
    const inside = new Uint8Array(data.parent.length);
    for (let node = 0; node < data.parent.length; node++) {
      const parent = data.parent[node] ?? -1;
      if (parent >= 0 && inside[parent] === 1) inside[node] = 1;
      else if (matches(data, node, wanted)) {
        inside[node] = 1;
        sum += layout.width[node] ?? 0;
      }
    }
    return sum;
  }, [data, wanted, layout]);
  return (
    <>
      <div class="tabs">
        <SearchField {...props} />
        {wanted !== "" && <span role="status">{duration(found)} ({percent((found / layout.total) * 100)}) match</span>}
        {data.threads.length > 1 && (
          <label>
            Thread{" "}
            <select value={props.parameters["thread"] ?? String(data.threads[0]?.id)} onChange={(event) => props.change({ thread: event.currentTarget.selectedIndex === 0 ? undefined : event.currentTarget.value, node: undefined })}>
              {data.threads.map((thread) => <option key={thread.id} value={String(thread.id)}>{thread.name}</option>)}
            </select>
          </label>
        )}
        {compared && <button type="button" aria-pressed={asBefore} onClick={() => props.change({ width: asBefore ? undefined : "before", node: undefined })}>Widths of before</button>}
        <button type="button" disabled={!(focus >= 0)} onClick={() => props.change({ node: undefined })}>All</button>
        <span class="quiet">
          {duration(layout.total)} in {data.source}
          {compared && "; red took longer than before, blue less"}
          {data.hidden > 0 && `; ${data.hidden} calls too short to be seen are left out`}
        </span>
      </div>
      <FlameCanvas data={data} layout={layout} label="Flame graph" search={wanted} focus={focus} onFocus={(node) => props.change({ node: node === null ? undefined : String(node) })} />
    </>
  );
}

function Sandwich(props: ViewProperties & { data: FlameData }) {
  const { data } = props;
  const place = props.parameters["function"];
  const loaded = useAnswer<SandwichData>(place === undefined ? null : `run/${props.run.id}/sandwich/${place}`);
  const chosen = data.places[Number(place ?? -1)];
  const table: TableData = {
    title: "Functions",
    columns: [
      { key: "function", title: "Function", unit: "", help: "The function.", numeric: false },
      { key: "place", title: "Place", unit: "", help: "Its file and line.", numeric: false },
      { key: "own", title: "Own", unit: "ns", help: "Time in the function itself.", numeric: true },
      { key: "total", title: "Total", unit: "ns", help: "Time in the function and all it called.", numeric: true },
    ],
    rows: data.places.map((known) => [known.name, known.file === "" ? "" : `${known.file}:${known.line}`, known.own, known.total]),
    units: [], doors: [],
  };
  const choose = (row: readonly unknown[]) => {
    const index = data.places.findIndex((known) => known.name === row[0] && known.own === row[2] && known.total === row[3]);
    props.change({ function: String(index) });
  };
  return (
    <>
      {chosen === undefined ? (
        <p class="quiet">Choose a function: all that called it is shown above it, all it called below.</p>
      ) : (
        <>
          <p class="tabs"><strong>{chosen.name}</strong> {duration(chosen.total)}, own {duration(chosen.own)}</p>
          <Answer loaded={loaded}>{(sides) => <Sides sides={sides} />}</Answer>
        </>
      )}
      <Table table={table} filter={props.parameters["search"] ?? ""} onFilter={(text) => props.change({ search: text === "" ? undefined : text }, false)} onRow={choose} />
    </>
  );
}

function Sides({ sides }: { sides: SandwichData }) {
  const [above, below] = useMemo(() => [sides.callers, sides.callees].map((side) => flameLayout(side.parent, side.total_time)), [sides]);
  if (above === undefined || below === undefined) return null;
  return (
    <>
      <h2>Callers</h2>
      <FlameCanvas data={sides.callers} layout={above} label="Callers" upward />
      <h2>Callees</h2>
      <FlameCanvas data={sides.callees} layout={below} label="Callees" />
    </>
  );
}
