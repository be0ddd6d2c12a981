// The frame around views: which trace, which view, and what the keys do. The list of views is here; one line adds one.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { go, link, read } from "./base/address";
import { size } from "./base/units";
import type { Run, RunList } from "./data/api";
import { isStatic, useAnswer } from "./data/server";
import { Answer } from "./widgets/answer";
import { HandOver } from "./widgets/hand_over";
import { Changed } from "./widgets/changed";
import { Missing } from "./widgets/missing";
import { SidePanel } from "./widgets/side_panel";
import { Advice } from "./views/advice";
import { Compare } from "./views/compare";
import { Flame } from "./views/flame";
import { Gpu } from "./views/gpu";
import { Memory } from "./views/memory";
import { Modules } from "./views/modules";
import { Overview } from "./views/overview";
import { Quality } from "./views/quality";
import { Ranks } from "./views/ranks";
import { Source } from "./views/source";
import { Steps } from "./views/steps";
import { tables } from "./views/tables";
import { Timeline } from "./views/timeline";
import type { ViewProperties } from "./views/view";

interface View {
  name: string;
  title: string;
  Component: ComponentType<ViewProperties>;
}

const VIEWS: readonly [View, ...View[]] = [
  { name: "overview", title: "Overview", Component: Overview },
  { name: "advice", title: "Advice", Component: Advice },
  { name: "timeline", title: "Timeline", Component: Timeline },
  { name: "steps", title: "Steps", Component: Steps },
  {
    name: "operators",
    title: "Operators",
    Component: tables([
      { name: "operators", title: "Operator" },
      { name: "shapes", title: "Input shape" },
      { name: "stacks", title: "Stack" },
      { name: "modules", title: "Module" },
      { name: "threads", title: "Thread" },
    ], { chart: true }),
  },
  {
    name: "kernels",
    title: "Kernels",
    Component: tables([{ name: "kernels", title: "Kernel" }, { name: "streams", title: "Stream" }], { chart: true }),
  },
  { name: "copies", title: "Copies", Component: tables([{ name: "copies", title: "Copy" }], { chart: true, names: ["kind", "from", "to"] }) },
  { name: "modules", title: "Modules", Component: Modules },
  { name: "gpu", title: "GPU", Component: Gpu },
  { name: "functions", title: "Functions", Component: tables([{ name: "functions", title: "Function" }, { name: "lines", title: "Line" }], { chart: true, names: ["function", "file", "line"], source: true }) },
  { name: "source", title: "Source", Component: Source },
  { name: "flame", title: "Flame graph", Component: Flame },
  { name: "memory", title: "Memory", Component: Memory },
  { name: "ranks", title: "Distributed", Component: Ranks },
  { name: "compare", title: "Compare", Component: Compare },
  { name: "quality", title: "Data quality", Component: Quality },
];

function usePlace() {
  const [place, setPlace] = useState(read);
  useEffect(() => {
    const changed = () => setPlace(read());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return place;
}

/** Keys 1 to 9 choose a view, `[` and `]` the one before and after; `/` goes to the first search field. */
function useKeys(choose: (view: string) => void) {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const writing = event.target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (writing || event.ctrlKey || event.metaKey || event.altKey) return;
      const beside = { "[": -1, "]": 1 }[event.key];
      // The address, not what is drawn: keys may come faster than views.
      const now = Math.max(0, VIEWS.findIndex((known) => known.name === read().view));
      const view = beside !== undefined ? VIEWS.at((now + beside) % VIEWS.length) : /^[1-9]$/.test(event.key) ? VIEWS[Number(event.key) - 1] : undefined;
      if (view !== undefined) choose(view.name);
      if (event.key === "/") {
        event.preventDefault();
        document.querySelector<HTMLInputElement>("main input[type=search]")?.focus();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}

/** TensorBoard's handler names cycles by the millisecond they were written at. */
function moment(cycle: string): string {
  return /^1\d{12}$/.test(cycle) ? `${new Date(Number(cycle)).toISOString().slice(0, 19).replace("T", " ")} UTC` : cycle;
}

function title(run: Run): string {
  return `${run.run} / ${run.worker}${run.cycle === null ? "" : ` / ${moment(run.cycle)}`} (${size(run.bytes)})`;
}

function Shown(props: { list: RunList }) {
  const place = usePlace();
  const [round, setRound] = useState(0);
  const { runs, note } = props.list;
  const wanted = runs.find((known) => String(known.id) === place.parameters["run"]);
  const gone = place.parameters["run"] !== undefined && wanted === undefined;
  const run = wanted ?? runs[0];
  const view = VIEWS.find((known) => known.name === place.view) ?? VIEWS[0];
  const choose = (name: string) => go(name, run === undefined ? {} : { run: String(run.id) });
  useKeys(choose);
  useEffect(() => {
    document.title = run === undefined ? "hotspan" : `${view.title} – ${run.file} – hotspan`;
  }, [view, run]);
  useEffect(() => document.querySelector(".views a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [view]);
  if (run === undefined) return <main><p class="empty">{note ?? "There is no trace here."}</p></main>;
  const change = (parameters: Record<string, string | undefined>, keep = true) => {
    const next = Object.entries({ ...read().parameters, run: String(run.id), ...parameters });
    go(view.name, Object.fromEntries(next.filter((pair): pair is [string, string] => pair[1] !== undefined)), keep);
  };
  const to = (name: string, parameters: Record<string, string> = {}) => link(name, { run: String(run.id), ...parameters });
  return (
    <>
      <header class="top">
        <strong>hotspan</strong>
        <label>
          <span class="hidden">Trace</span>
          <select value={String(run.id)} onChange={(event) => go(view.name, { run: event.currentTarget.value })}>
            {runs.map((known) => (
              <option key={known.id} value={String(known.id)}>{title(known)}</option>
            ))}
          </select>
        </label>
        {note !== null && <span class="quiet">{note}</span>}
        <HandOver key={view.name} run={run} parameters={place.parameters} />
      </header>
      <nav class="views" aria-label="Views">
        {VIEWS.map((known, index) => (
          <a key={known.name} href={to(known.name)} aria-current={known === view ? "page" : undefined} title={index < 9 ? `Key ${index + 1}` : undefined}>
            {known.title}
          </a>
        ))}
      </nav>
      <div class="beside">
      <main>
        <h1 class="hidden">{view.title}</h1>
        {gone ? (
          <div class="problem" role="alert">
            <p>The trace that was shown here is no longer in the folder.</p>
            <p class="quiet">It may have been moved or deleted. Choose another one above.</p>
          </div>
        ) : (
          <>
            <Missing key={`missing ${run.id} ${round}`} run={run} href={to("quality")} />
            <Changed run={run} onReload={() => setRound(round + 1)} />
            <view.Component key={`${view.name} ${run.id} ${round}`} run={run} runs={runs} parameters={place.parameters} change={change} to={to} />
          </>
        )}
      </main>
      <SidePanel run={run.id} parameters={place.parameters} to={to} />
      </div>
    </>
  );
}

const LISTED_EVERY = 10_000;

export function Application() {
  const [round, setRound] = useState(0);
  const [last, setLast] = useState<RunList | null>(null);
  const loaded = useAnswer<RunList>(`runs?${round}`);
  useEffect(() => {
    if (isStatic) return;
    const timer = setInterval(() => setRound((before) => before + 1), LISTED_EVERY);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (loaded.state === "ready") setLast(loaded.value);
  }, [loaded]);
  if (last !== null) return <Shown list={last} />;
  return <Answer loaded={loaded}>{() => null}</Answer>;
}
