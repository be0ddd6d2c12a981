// The frame around views: which trace, which view, and what the keys do. The list of views is in tabs.tsx.

import { useEffect, useState } from "preact/hooks";
import { go, link, read } from "./base/address";
import { keptRange, selected, type Stretch } from "./base/ranges";
import { theme } from "./base/theme";
import { size } from "./base/units";
import type { Run, RunList, ViewContent } from "./data/api";
import { ChosenRange, isStatic, useAnswer } from "./data/server";
import { GLOSSARY, TABS, VIEWS, viewNamed, type Tab, type View } from "./tabs";
import { Answer } from "./widgets/answer";
import { Arrivals } from "./widgets/arrivals";
import { Changed } from "./widgets/changed";
import { DropZone } from "./widgets/drop_zone";
import { HandOver } from "./widgets/hand_over";
import { Missing } from "./widgets/missing";
import { keptMyCode } from "./widgets/my_code";
import { Palette } from "./widgets/palette";
import { RangeChip } from "./widgets/range_chip";
import { SidePanel } from "./widgets/side_panel";
import { TabBar, type TabLink } from "./widgets/tab_bar";
import { ThemeButton } from "./widgets/theme_button";
import { ShownRun } from "./widgets/waiting";

/** Views that are always about the whole recording. */
const WHOLE = ["quality", "ranks", "compare", "glossary", "source"];

function usePlace() {
  const [place, setPlace] = useState(read);
  useEffect(() => {
    const changed = () => setPlace(read());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return place;
}

/** Keys 1 to 8 choose a tab, `[` and `]` the view before and after; `/` goes to the first search field, `?` to the glossary. */
function useKeys(choose: (view: string) => void, openTab: (tab: Tab) => void) {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const writing = event.target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (writing || event.ctrlKey || event.metaKey || event.altKey) return;
      const beside = { "[": -1, "]": 1 }[event.key];
      // The address, not what is drawn: keys may come faster than views.
      const shown = viewNamed(read().view);
      const now = Math.max(0, VIEWS.indexOf(shown));
      const view = beside === undefined ? undefined : VIEWS.at((now + beside) % VIEWS.length);
      if (view !== undefined) choose(view.name);
      const tab = /^[1-8]$/.test(event.key) ? TABS[Number(event.key) - 1] : undefined;
      if (tab !== undefined) openTab(tab);
      // The timeline has keys of its own to list.
      if (event.key === "?" && shown.name !== "timeline") choose(GLOSSARY.name);
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

/** What to record for each view that has nothing to show; empty until that is known. */
function useEmpty(run: Run | undefined, round: number): ReadonlyMap<string, string> {
  const loaded = useAnswer<ViewContent[]>(run === undefined ? null : `contents?run=${run.id}${isStatic || round === 0 ? "" : `&${round}`}`);
  const views = loaded.state === "ready" ? loaded.value : [];
  return new Map(views.filter((view) => !view.filled).map((view) => [view.view, view.record]));
}

/** What stays in the address while views change: the range, and whose code is wanted. */
function kept(parameters: Record<string, string>): Record<string, string> {
  return { ...keptRange(parameters), ...keptMyCode(parameters) };
}

function Shown(props: { list: RunList }) {
  const place = usePlace();
  const [round, setRound] = useState(0);
  const [, setTheme] = useState(0);
  const { runs, note } = props.list;
  const wanted = runs.find((known) => String(known.id) === place.parameters["run"]);
  const gone = place.parameters["run"] !== undefined && wanted === undefined;
  const run = wanted ?? runs[0];
  const view = viewNamed(place.view);
  const choose = (name: string) => go(name, run === undefined ? {} : { run: String(run.id), ...kept(read().parameters) });
  const empty = useEmpty(gone ? undefined : run, round);
  /** A tab leads to the first of its views that has something to show. */
  const target = (tab: Tab): View => tab.views.find((known) => !empty.has(known.name)) ?? tab.views[0];
  useKeys(choose, (tab) => choose(target(tab).name));
  useEffect(() => {
    document.title = run === undefined ? "hotspan" : `${view.title} – ${run.file} – hotspan`;
  }, [view, run]);
  useEffect(() => {
    for (const current of document.querySelectorAll(".views a[aria-current]")) current.scrollIntoView({ block: "nearest", inline: "center" });
  }, [view]);
  if (run === undefined) return <main><p class="empty">{note ?? "There is no trace here."} {!isStatic && "A trace can also be dropped onto this page."}</p></main>;
  const change = (parameters: Record<string, string | undefined>, keep = true) => {
    const next = Object.entries({ ...read().parameters, run: String(run.id), ...parameters });
    go(view.name, Object.fromEntries(next.filter((pair): pair is [string, string] => pair[1] !== undefined)), keep);
  };
  // What stays belongs to a trace.
  const to = (name: string, parameters: Record<string, string> = {}) => link(name, { ...(parameters["run"] === undefined ? kept(place.parameters) : {}), run: String(run.id), ...parameters });
  const range = isStatic ? null : selected(place.parameters);
  const onRange = (chosen: Stretch | null) => change({ begin: chosen === null ? undefined : String(Math.round(chosen.begin)), end: chosen === null ? undefined : String(Math.round(chosen.end)) });
  const tab = TABS.find((known) => known.views.includes(view));
  const inner = tab?.views ?? [];
  const viewLink = (known: View): TabLink => ({ name: known.name, title: known.title, href: to(known.name), current: known === view, record: empty.get(known.name) ?? null });
  const tabLink = (known: Tab, index: number): TabLink => ({ ...viewLink(target(known)), name: known.name, title: known.title, current: known === tab, hotkey: String(index + 1) });
  return (
    <ShownRun.Provider value={run.id}>
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
        {!isStatic && !gone && <RangeChip key={`${run.id} ${range?.begin} ${range?.end}`} run={run.id} range={range} applies={!WHOLE.includes(view.name)} onRange={onRange} />}
        <span class="tools">
          <HandOver key={view.name} run={run} parameters={place.parameters} />
          <ThemeButton onChange={() => setTheme((before) => before + 1)} />
          <a class="help" href={to(GLOSSARY.name)} aria-label="Glossary and keys" title="Glossary and keys (?)" aria-current={view === GLOSSARY ? "page" : undefined}>?</a>
        </span>
      </header>
      <TabBar label="Views" links={TABS.map(tabLink)} />
      {inner.length > 1 && <TabBar label={tab?.title ?? ""} links={inner.map(viewLink)} inner />}
      <div class="beside">
      <main data-view={view.name}>
        <h1 class="hidden">{view.title}</h1>
        {gone ? (
          <div class="problem" role="alert">
            <p>The trace that was shown here is no longer in the folder.</p>
            <p class="quiet">It may have been moved or deleted. Choose another one above.</p>
          </div>
        ) : (
          <>
            {!isStatic && <Arrivals runs={runs} shown={run.id} onShow={(arrived) => go(view.name, { run: String(arrived.id) })} />}
            <Missing key={`missing ${run.id} ${round}`} run={run} href={to("quality")} />
            <Changed run={run} onReload={() => setRound(round + 1)} />
            <ChosenRange.Provider value={range}>
            <view.Component key={`${view.name} ${run.id} ${round} ${theme()}`} run={run} runs={runs} parameters={place.parameters} change={change} to={to} />
            </ChosenRange.Provider>
          </>
        )}
      </main>
      <SidePanel run={run.id} parameters={place.parameters} to={to} />
      <Palette views={[...VIEWS, GLOSSARY].map((known) => ({ title: `Go to ${known.title}`, run: () => choose(known.name) }))} />
      </div>
    </ShownRun.Provider>
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
  /** A file that was dropped is shown at once; it is in the next list, too. */
  const show = (run: Run) => {
    setLast((before) => ({ note: null, runs: [...(before?.runs ?? []).filter((known) => known.id !== run.id), run] }));
    go("overview", { run: String(run.id) });
  };
  if (last !== null) return <><Shown list={last} />{!isStatic && <DropZone onRun={show} />}</>;
  return <Answer loaded={loaded}>{() => null}</Answer>;
}
