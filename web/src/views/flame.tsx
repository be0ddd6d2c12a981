// Flame graph: all calls of a path added up (left heavy), in order of time, around one function, or against another trace. What is left out of it,
// and which side is up, is in the address; the server does it.

import { useMemo } from "preact/hooks";
import { prefersDark } from "../base/colour";
import { compared } from "../base/compared";
import { FLAME_COLOURS, flameLegend } from "../base/flame_colour";
import { flameLayout } from "../base/flame_layout";
import { selected } from "../base/ranges";
import { duration, percent } from "../base/units";
import type { FlameData, FlameNames, FlamePlace, SandwichData, TableData } from "../data/api";
import { isStatic, useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { FlameCanvas } from "../widgets/flame_canvas";
import { keptMyCode, MyCode } from "../widgets/my_code";
import { PairChoice } from "../widgets/pair_choice";
import { Swatch } from "../widgets/swatch";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

const ORDERS = [
  ["heavy", "Left heavy"],
  ["time", "Time order"],
  ["sandwich", "Sandwich"],
  ["compared", "Compared"],
] as const;

/** What is left out, and whether it is turned: what the address calls it, what the server does, what people read. */
const SWITCHES = [
  ["inverted", "Inverted", "What took the time itself is on top, its callers below"],
  ["imports", "Collapse imports", "An import is one call, whatever it runs"],
  ["busy", "Hide waiting", "Leave out threads while they wait"],
] as const;

/** hotspan's own functions are left out unless somebody wants them. */
const OWN = "recorder";

/** The part of an address that names a stretch of time and tracks. */
function partOf(parameters: Record<string, string>): string[] {
  if (selected(parameters) === null) return [];
  return ["begin", "end", "tracks"].flatMap((name) => (parameters[name] === undefined ? [] : [`${name}=${encodeURIComponent(parameters[name])}`]));
}

function question(call: string, parts: readonly string[]): string {
  return parts.length === 0 ? call : `${call}?${parts.join("&")}`;
}

export function Flame(props: ViewProperties) {
  const { parameters } = props;
  const order = ORDERS.find(([name]) => name === parameters["order"])?.[0] ?? "heavy";
  const pair = compared(props.runs, props.run, parameters);
  const run = `run/${props.run.id}`;
  const thread = parameters["thread"];
  const part = isStatic ? [] : partOf(parameters);
  // A page to share has the graph as it is.
  const shape = isStatic ? [] : [...(parameters["own"] === "1" ? [] : [`${OWN}=1`]), ...Object.entries(keptMyCode(parameters)).map(([name, value]) => `${name}=${value}`), ...SWITCHES.flatMap(([name]) => (parameters[name] === "1" ? [`${name}=1`] : []))];
  const calls = {
    heavy: question(`${run}/flame`, [...shape, ...part]),
    sandwich: question(`${run}/flame`, part),
    time: question(`${run}/flame/time`, [...(thread === undefined ? [] : [`thread=${thread}`]), ...part]),
    compared: pair === null ? null : `compare/flame?before=${pair.before.id}&after=${pair.after.id}`,
  };
  const loaded = useAnswer<FlameData>(calls[order]);
  return (
    <>
      <div class="tabs" role="group" aria-label="Order of calls">
        {ORDERS.map(([name, title]) => (
          <button key={name} type="button" aria-pressed={name === order} onClick={() => props.change({ order: name, node: undefined })}>{title}</button>
        ))}
        {order === "compared" && pair !== null && <PairChoice runs={props.runs} pair={pair} onPair={(chosen) => props.change({ ...chosen, node: undefined })} />}
        {order === "heavy" && !isStatic && <Switches {...props} />}
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

function Switches(props: ViewProperties) {
  const toggle = (name: string) => props.change({ [name]: props.parameters[name] === "1" ? undefined : "1", node: undefined });
  return (
    <>
      <span class="gap" />
      <MyCode {...props} help="Leave out libraries, operators and built-in functions: their time is that of your function that called them" also={{ node: undefined }} />
      {SWITCHES.map(([name, title, help]) => (
        <button key={name} type="button" title={help} aria-pressed={props.parameters[name] === "1"} onClick={() => toggle(name)}>{title}</button>
      ))}
      <button type="button" title="Leave out the functions with which hotspan records" aria-pressed={props.parameters["own"] !== "1"} onClick={() => toggle("own")}>Hide hotspan</button>
    </>
  );
}

interface Found {
  text: string;
  /** Of each place whether it matches; nothing while it is not known, or where nothing is searched for. */
  places: Uint8Array | null;
  problem: string | null;
}

/** Which places match. Patterns are the server's: it takes time in proportion to the text, whatever the pattern is. */
function useFound(props: ViewProperties & { data: FlameData }): Found {
  const text = props.parameters["search"] ?? "";
  const asked = text !== "" && props.parameters["pattern"] === "1" && !isStatic;
  const loaded = useAnswer<FlameNames>(asked ? `run/${props.run.id}/flame/names?text=${encodeURIComponent(text)}` : null);
  const names = asked && loaded.state === "ready" ? loaded.value : null;
  const places = useMemo(() => {
    if (text === "" || (asked && names === null)) return null;
    const known = new Set(names?.names);
    const wanted = text.toLowerCase();
    const matches = (place: FlamePlace) => (asked ? known.has(`${place.name} ${place.file}`) : `${place.name} ${place.file}`.toLowerCase().includes(wanted));
    return Uint8Array.from(props.data.places, (place) => (matches(place) ? 1 : 0));
  }, [props.data, text, asked, names]);
  return { text, places, problem: names?.problem ?? null };
}

function SearchField(props: ViewProperties) {
  const { parameters } = props;
  return (
    <>
      <input type="search" placeholder="Search functions" aria-label="Search functions" value={parameters["search"] ?? ""} onInput={(event) => props.change({ search: event.currentTarget.value === "" ? undefined : event.currentTarget.value }, false)} />
      {!isStatic && <button type="button" aria-pressed={parameters["pattern"] === "1"} aria-label="Regular expression" title="Search by regular expression" onClick={() => props.change({ pattern: parameters["pattern"] === "1" ? undefined : "1" }, false)}>.*</button>}
    </>
  );
}

function Graph(props: ViewProperties & { data: FlameData }) {
  const { data, parameters } = props;
  const compared = data.before.length > 0;
  const asBefore = compared && parameters["width"] === "before";
  const layout = useMemo(() => flameLayout(data.parent, asBefore ? data.before : data.total_time, data.begin), [data, asBefore]);
  const focus = Number(parameters["node"] ?? -1);
  const found = useFound(props);
  const colour = FLAME_COLOURS.find(([name]) => name === parameters["colour"])?.[0] ?? "name";
  const legend = compared ? [] : flameLegend(data.places, colour, prefersDark());
  // Time below a call that matched is not counted again.
  const time = useMemo(() => {
    let sum = 0;
    const inside = new Uint8Array(data.parent.length);
    for (let node = 0; node < data.parent.length; node++) {
      const parent = data.parent[node] ?? -1;
      if (parent >= 0 && inside[parent] === 1) inside[node] = 1;
      else if (found.places?.[data.place[node] ?? 0] === 1) {
        inside[node] = 1;
        sum += layout.width[node] ?? 0;
      }
    }
    return sum;
  }, [data, found.places, layout]);
  const range = selected(parameters);
  // Calls too short to be sent have their time in the whole all the same.
  const total = compared ? layout.total : data.total;
  return (
    <>
      <div class="tabs">
        <SearchField {...props} />
        {found.text !== "" && <span role="status">{found.problem ?? (found.places === null ? "…" : `${duration(time)} (${percent((time / Math.max(1, total)) * 100)}) match`)}</span>}
        {data.threads.length > 1 && (
          <label>
            Thread{" "}
            <select value={parameters["thread"] ?? String(data.threads[0]?.id)} onChange={(event) => props.change({ thread: event.currentTarget.selectedIndex === 0 ? undefined : event.currentTarget.value, node: undefined })}>
              {data.threads.map((thread) => <option key={thread.id} value={String(thread.id)}>{thread.name}</option>)}
            </select>
          </label>
        )}
        {compared ? (
          <button type="button" aria-pressed={asBefore} onClick={() => props.change({ width: asBefore ? undefined : "before", node: undefined })}>Widths as before</button>
        ) : (
          <label>
            Colour{" "}
            <select value={colour} onChange={(event) => props.change({ colour: event.currentTarget.selectedIndex === 0 ? undefined : event.currentTarget.value }, false)}>
              {FLAME_COLOURS.map(([name, title]) => <option key={name} value={name}>{title}</option>)}
            </select>
          </label>
        )}
        <button type="button" disabled={!(focus >= 0)} onClick={() => props.change({ node: undefined })}>All</button>
        <span class="quiet">
          {duration(total)} in {data.source}
          {range !== null && !isStatic && ` of the selected ${duration(range.end - range.begin)}`}
          {compared && "; red took longer than before, blue less"}
          {data.hidden > 0 && `; ${data.hidden} calls too short to be seen are left out`}
        </span>
      </div>
      {legend.length > 0 && <ul class="legend">{legend.map(([title, tint]) => <li key={title}><Swatch colour={tint} />{title}</li>)}</ul>}
      <FlameCanvas data={data} layout={layout} label="Flame graph" found={found.places} colour={colour} focus={focus} onFocus={(node) => props.change({ node: node === null ? undefined : String(node) })} />
    </>
  );
}

function Sandwich(props: ViewProperties & { data: FlameData }) {
  const { data } = props;
  const place = props.parameters["function"];
  const loaded = useAnswer<SandwichData>(place === undefined ? null : question(`run/${props.run.id}/sandwich/${place}`, isStatic ? [] : partOf(props.parameters)));
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
