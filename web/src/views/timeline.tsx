// Timeline: every thread, stream and counter over time. What is seen, selected, chosen, searched, pinned and folded is in the address; entries of the
// history are made by jumps and choices, not by moving, so that going back returns to where one was.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { provide, type Command } from "../base/commands";
import { notesOf, notesText, type Note } from "../base/notes";
import { remembered, remember } from "../base/preferences";
import { duration, shown as withUnit } from "../base/units";
import type { Beside, Found as Same, Hit, SpanDetails, TimelineInfo } from "../data/api";
import { ask, isStatic, knowsSpan, knowsSpans, useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { Dock } from "../widgets/dock";
import { openPalette } from "../widgets/palette";
import { RangeTables } from "../widgets/range_tables";
import { SpanCard } from "../widgets/span_card";
import type { Area, Arrow, Found, Mark, Range } from "../widgets/timeline_canvas";
import { KeyHelp, useKeys } from "../widgets/timeline_keys";
import { arrange, foldedAtFirst, HEAD, lineAt, type Arrangement } from "../widgets/timeline_layout";
import { Minimap } from "../widgets/timeline_minimap";
import { NoteDialog, NoteList } from "../widgets/timeline_notes";
import { listen, type Gestures } from "../widgets/timeline_pointer";
import { SearchField, useSearch, type Wanted } from "../widgets/timeline_search";
import { Stage, type Row } from "../widgets/timeline_stage";
import { Tooltip } from "../widgets/tooltip";
import { TrackList } from "../widgets/track_list";
import type { ViewProperties } from "./view";

export function Timeline(props: ViewProperties) {
  const loaded = useAnswer<TimelineInfo>(`run/${props.run.id}/timeline`);
  return (
    <Answer loaded={loaded}>
      {(info) => (info.tracks.length === 0 ? <Empty record={info.record} /> : <Tracks {...props} info={info} />)}
    </Answer>
  );
}

/** A span that is gone to fills this part of what is seen. */
const AROUND = 8;
/** Clicks this near to the right edge of a title pin the track. */
const PIN_WIDTH = 44;

/** How high the details of a span are; kept while one looks at other views. */
const DOCK = { height: 250 };

/** The track that a link names: its number, or the first of a device. */
function trackOf(info: TimelineInfo, text: string | undefined): number | null {
  return text === "device" ? (info.tracks.find((track) => track.device)?.id ?? null) : number(text);
}

function number(text: string | undefined): number | null {
  const value = text === undefined || text === "" ? NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

function rangeOf(from: string | undefined, to: string | undefined): Range | null {
  const [begin, end] = [number(from), number(to)];
  return begin === null || end === null || end < begin ? null : { from: begin, to: end };
}

function areaOf(parameters: Record<string, string>): Area | null {
  const range = rangeOf(parameters["begin"], parameters["end"]);
  const tracks = list(parameters["tracks"]).map(Number).filter(Number.isInteger);
  return range === null ? null : { ...range, tracks: tracks.length === 0 ? null : tracks };
}

const list = (text: string | undefined): string[] => (text === undefined || text === "" ? [] : text.split(","));
const toggled = <T,>(all: readonly T[], one: T): T[] => (all.includes(one) ? all.filter((known) => known !== one) : [...all, one]);
const markOf = (details: SpanDetails): Mark => ({ track: details.track_id, depth: details.depth, begin: details.begin, end: details.begin + details.duration });

/** From a call to what it launched, from forward to backward, whichever of the two was chosen. What an operator launched comes from the call in it. */
function arrowsOf(details: SpanDetails): Arrow[] {
  const own = markOf(details);
  const comes = ["launched by", "forward", "arrow from", "behind it"];
  return details.linked.map((link) => (comes.includes(link.relation) ? { from: link, to: own } : { from: link.launch ?? own, to: link }));
}

function useArrangement(props: ViewProperties, info: TimelineInfo): Arrangement {
  const { fold, close, pin } = props.parameters;
  return useMemo(() => {
    const groups = [...new Set(info.tracks.map((track) => track.process))];
    return {
      folded: fold === undefined ? foldedAtFirst(info.tracks) : new Set(list(fold).map(Number)),
      closed: new Set(list(close).map((place) => groups[Number(place)] ?? "")),
      pinned: list(pin).map(Number),
    };
  }, [fold, close, pin, info]);
}

function Tracks(props: ViewProperties & { info: TimelineInfo }) {
  const { info, parameters, run } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const strip = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const stage = useRef<Stage | null>(null);
  const written = useRef("");
  const wanted = useRef<Row | null>(null);
  const [help, setHelp] = useState(false);
  const [noting, setNoting] = useState<number | null>(null);
  const notes = useMemo(() => notesOf(parameters["notes"]), [parameters["notes"]]);
  const [problem, setProblem] = useState<string | null>(null);
  const [hover, setHover] = useState<{ found: Found; x: number; y: number } | null>(null);
  const [selecting, setSelecting] = useState<Area | null>(null);
  const [drag, setDrag] = useState(() => remembered("drag") ?? "pan");
  const [length, setLength] = useState(info.end - info.begin);
  const whole = { from: info.begin, to: info.end };
  const seen = rangeOf(parameters["from"], parameters["to"]);
  const top = number(parameters["top"]);
  const selected = useMemo(() => areaOf(parameters), [parameters["begin"], parameters["end"], parameters["tracks"]]);
  const arrangement = useArrangement(props, info);
  const layout = useMemo(() => arrange(info.tracks, arrangement), [info, arrangement]);
  const docked = parameters["span"] !== undefined || parameters["call"] !== undefined;
  const [dock, setDock] = useState(DOCK.height);
  const resize = (next: number) => {
    DOCK.height = next;
    setDock(next);
  };
  const height = docked ? `min(${layout.height}px, max(160px, 100vh - ${240 + dock}px))` : `min(${layout.height}px, max(320px, 100vh - 230px))`;
  const latest = useRef({ props, arrangement });
  latest.current = { props, arrangement };

  const [span, call] = [parameters["span"], parameters["call"]?.split(".")];
  const asked = span !== undefined ? `span/${span}` : call !== undefined ? `call?track=${call[0]}&depth=${call[1]}&at=${call[2]}` : null;
  const details = useAnswer<SpanDetails>(asked === null ? null : `run/${run.id}/${asked}`);
  const chosen = details.state === "ready" && asked !== null ? details.value : null;

  /** Scrolls to a row; what is folded over it is unfolded first. */
  const reach = (row: Row) => {
    const track = info.tracks.find((known) => known.id === row.track);
    if (track === undefined) return;
    const { folded, closed } = latest.current.arrangement;
    const groups = [...new Set(info.tracks.map((known) => known.process))];
    const hidden = { fold: folded.has(track.id) && row.depth > 0, close: closed.has(track.process) };
    if (!hidden.fold && !hidden.close) stage.current?.reach(row);
    else {
      wanted.current = row;
      const open = [...closed].filter((group) => group !== track.process).map((group) => groups.indexOf(group));
      props.change({ ...(hidden.fold ? { fold: [...folded].filter((id) => id !== track.id).join(",") } : {}), ...(hidden.close ? { close: open.join(",") || undefined } : {}) }, false);
    }
  };
  const reveal = (mark: Mark) => {
    const around = Math.max(mark.end - mark.begin, 1000) * AROUND;
    const middle = (mark.begin + mark.end) / 2;
    stage.current?.show({ from: middle - around / 2, to: middle + around / 2 });
    reach(mark);
  };
  /** Chooses a span or a sampled call; the place that was seen stays in the history. */
  const choose = (found: Mark & { span: number }) => {
    stage.current?.keep(found);
    const sampled = found.span < 0 ? `${found.track}.${found.depth}.${Math.round(found.begin)}` : undefined;
    props.change({ span: found.span < 0 ? undefined : String(found.span), call: sampled });
  };
  const wants = { text: parameters["search"] ?? "", pattern: parameters["pattern"] === "1", args: parameters["args"] === "1" };
  const search = useSearch(run.id, wants, number(parameters["hit"]), () => stage.current?.seen.from ?? info.begin, (hit, place) => {
    const sampled = hit.span < 0 ? `${hit.track}.${hit.depth}.${hit.begin}` : undefined;
    props.change({ hit: String(place), span: hit.span < 0 ? undefined : String(hit.span), call: sampled });
    reveal(hit);
  });
  const searchFor = ({ text, pattern, args }: Wanted) => props.change({ search: text === "" ? undefined : text, pattern: pattern ? "1" : undefined, args: args ? "1" : undefined, hit: undefined }, false);
  const select = (range: Range | null, tracks: readonly number[] | null = null) =>
    props.change({ begin: range === null ? undefined : String(Math.round(range.from)), end: range === null ? undefined : String(Math.round(range.to)), tracks: tracks?.join(",") });

  const fold = (track: number) => props.change({ fold: toggled([...latest.current.arrangement.folded], track).join(",") }, false);
  const pin = (track: number) => props.change({ pin: toggled(latest.current.arrangement.pinned, track).join(",") || undefined }, false);
  const pins = (tracks: readonly number[]) => props.change({ pin: tracks.join(",") || undefined }, false);
  const close = (group: string) => {
    const groups = [...new Set(info.tracks.map((track) => track.process))];
    props.change({ close: toggled(list(latest.current.props.parameters["close"]), String(groups.indexOf(group))).join(",") || undefined }, false);
  };

  useEffect(() => {
    if (canvas.current === null || scroller.current === null) return;
    const settled = (range: Range, scroll: number) => {
      const [from, to, top] = [String(Math.round(range.from)), String(Math.round(range.to)), String(Math.round(scroll))];
      written.current = `${from} ${to} ${top}`;
      setLength(range.to - range.from);
      latest.current.props.change({ from, to, top }, false);
    };
    const made = new Stage(canvas.current, scroller.current, info, run.id, layout, seen ?? whole, settled, setProblem);
    stage.current = made;
    if (strip.current !== null) made.follower = new Minimap(strip.current, info, (range) => made.show(range));
    if (top !== null) made.scrollTo(top);
    setLength(made.seen.to - made.seen.from);
    return () => {
      stage.current = null;
      made.follower?.close();
      made.close();
    };
  }, [info, run.id]);

  // A gesture goes on while the address changes, so listeners stay and what they call is looked up.
  const gestures = useRef<Gestures | null>(null);
  gestures.current = {
    select: (area, done) => {
      if (isStatic) return;
      setSelecting(done ? null : area);
      if (done) select(area, area.tracks);
    },
    selects: () => drag === "select" && !isStatic,
    hover: (point) => {
      const found = point === null ? null : (stage.current?.at(point.x, point.y) ?? null);
      setHover(found === null || point === null ? null : { found, ...point });
    },
    click: (x, y) => {
      if (stage.current === null) return;
      const { scene, painter } = stage.current;
      const shown = lineAt(scene.layout, scene.scroll, painter.height, y);
      if (shown !== null && y < shown.y + HEAD) {
        if (shown.line.track === null) close(shown.line.group);
        else if (x > painter.width - PIN_WIDTH) pin(shown.line.track.id);
        else fold(shown.line.track.id);
        return;
      }
      const hit = stage.current.at(x, y);
      if (hit === null || hit.value !== null) return;
      if (hit.count > 1) reveal(hit);
      else if (knowsSpan(run.id, hit.span)) choose(hit);
    },
  };
  useEffect(() => {
    if (stage.current === null || scroller.current === null) return;
    return listen(stage.current, scroller.current, {
      select: (area, done) => gestures.current?.select(area, done),
      selects: () => gestures.current?.selects() ?? false,
      hover: (point) => gestures.current?.hover(point),
      click: (x, y) => gestures.current?.click(x, y),
    });
  }, [info, run.id]);

  // Going back or forward in the history changes the address and nothing else.
  useEffect(() => {
    const now = `${parameters["from"] ?? ""} ${parameters["to"] ?? ""} ${parameters["top"] ?? ""}`;
    if (seen !== null && now !== written.current) {
      written.current = now;
      stage.current?.show(seen);
      if (top !== null) stage.current?.scrollTo(top);
    }
  }, [parameters["from"], parameters["to"], parameters["top"]]);
  useEffect(() => {
    stage.current?.arrange(layout);
    if (wanted.current !== null && stage.current?.reach(wanted.current) === true) wanted.current = null;
  }, [layout]);
  useEffect(() => {
    stage.current?.choose({ notes, selected: selecting ?? selected, mark: chosen === null ? null : markOf(chosen), arrows: chosen === null ? [] : arrowsOf(chosen), search: `${search.text} ${search.pattern} ${search.args}`, names: search.names });
  }, [notes, selected, selecting, chosen, search.names]);

  // A link into the timeline may name a span, a moment or a track without saying what to see around it, or how far down. That is found
  // once for each moment: afterwards the address says what is seen.
  const placed = useRef<string | null | undefined>(seen !== null && top !== null ? parameters["at"] : null);
  useEffect(() => {
    const [moment, track] = [number(parameters["at"]), trackOf(info, parameters["track"])];
    if (placed.current === parameters["at"] || (asked !== null && details.state === "waiting")) return;
    const isFirst = placed.current === null;
    placed.current = parameters["at"];
    const mark = chosen !== null ? markOf(chosen) : moment !== null ? { track: -1, depth: 0, begin: moment, end: moment } : null;
    if (mark !== null && (seen === null || !isFirst)) reveal(mark);
    else if (mark !== null) reach(mark);
    if (track !== null) reach({ track, depth: 0 });
  }, [details.state, parameters["at"]]);

  const follow = (target: Mark & { span: number }) => {
    if (!knowsSpan(run.id, target.span)) return;
    choose(target);
    reveal(target);
  };
  /** Chooses a span that the server found, and brings it into sight without zooming where it can be seen as it is. */
  const pick = (hit: Hit) => {
    choose(hit);
    const now = stage.current?.seen ?? whole;
    const outside = hit.end < now.from || hit.begin > now.to;
    const tiny = ((hit.end - hit.begin) / (now.to - now.from)) * (stage.current?.painter.width ?? 1000) < 3;
    if (tiny) reveal(hit);
    else {
      const half = (now.to - now.from) / 2;
      const middle = Math.max(hit.begin, Math.min(hit.end, hit.begin + half));
      if (outside) stage.current?.show({ from: middle - half, to: middle + half });
      reach(hit);
    }
  };
  const beside = (track: number, depth: number, at: number, to: string) => ask<Beside>(`run/${run.id}/beside?track=${track}&depth=${depth}&at=${Math.round(at)}&to=${to}`).then((found) => found.hit);
  /** Tracks that have spans, in the order they are shown. */
  const rows = useMemo(() => [...layout.pinned, ...layout.lines].flatMap(({ track }) => (track === null || track.kind === "counter" ? [] : [track.id])), [layout]);
  /** Goes from the chosen span to the one beside it; where a track ends, to the next one. */
  const step = async (to: "left" | "right" | "up" | "down") => {
    if (!knowsSpans(run.id)) return;
    if (chosen === null) {
      const now = stage.current?.seen ?? whole;
      const first = stage.current?.firstTrack(rows);
      const hit = first === undefined ? null : await beside(first, 0, (now.from + now.to) / 2, "near");
      if (hit !== null) pick(hit);
      return;
    }
    let hit = await beside(chosen.track_id, chosen.depth, chosen.begin, to);
    let next = rows.indexOf(chosen.track_id);
    const direction = to === "down" ? 1 : to === "up" ? -1 : 0;
    while (hit === null && direction !== 0 && rows[next + direction] !== undefined) {
      next += direction;
      hit = await beside(rows[next] ?? -1, 0, chosen.begin, "near");
    }
    if (hit !== null) pick(hit);
  };
  const same = (direction: 1 | -1) => {
    if (!knowsSpans(run.id) || chosen === null || chosen.category === "idle") return;
    void ask<Same>(`run/${run.id}/same?track=${chosen.track_id}&depth=${chosen.depth}&at=${chosen.begin}&step=${direction}`).then((found) => found.hit !== null && pick(found.hit), () => undefined);
  };
  const dragging = (next: string) => {
    remember("drag", next);
    setDrag(next);
  };
  const fill = () => {
    if (chosen !== null) reveal(markOf(chosen));
    else if (selected !== null) stage.current?.show(selected);
  };
  const mark = () => !isStatic && select(chosen !== null ? { from: chosen.begin, to: chosen.begin + chosen.duration } : (stage.current?.seen ?? whole));
  const note = () => {
    const { from, to } = stage.current?.seen ?? whole;
    setNoting(chosen?.begin ?? from + (to - from) * (stage.current?.pointer ?? 0.5));
  };
  const write = (next: readonly Note[]) => props.change({ notes: notesText(next) });
  const up = () => {
    const around = chosen?.stack[chosen.stack.length - 1];
    if (around !== undefined) follow(around);
  };
  const letGo = () => {
    if (asked !== null) props.change({ span: undefined, call: undefined, hit: undefined });
    else if (selected !== null) select(null);
  };
  const [zoomIn, zoomOut] = [() => stage.current?.zoom(0.7), () => stage.current?.zoom(1 / 0.7)];
  const [left, right] = [() => stage.current?.move(-0.15), () => stage.current?.move(0.15)];
  useKeys({
    w: zoomIn, s: zoomOut, a: left, d: right, ",": () => same(-1), ".": () => same(1),
    ArrowUp: () => void step("up"), ArrowDown: () => void step("down"), ArrowLeft: () => void step("left"), ArrowRight: () => void step("right"),
    "Shift+ArrowUp": () => stage.current?.climb(-60), "Shift+ArrowDown": () => stage.current?.climb(60),
    n: () => search.go(1), p: () => search.go(-1), f: fill, m: mark, t: note, u: up, "0": () => stage.current?.show(whole),
    l: () => chosen?.linked[0] !== undefined && follow(chosen.linked[0]),
    Escape: letGo, "?": () => setHelp(true),
  });

  const flameHref = props.to("flame", selected === null ? {} : { begin: String(Math.round(selected.from)), end: String(Math.round(selected.to)), ...(selected.tracks === null ? {} : { tracks: selected.tracks.join(",") }) });
  const ofSpans: readonly Command[] = [
    { title: "Search spans", keys: "/", run: () => document.querySelector<HTMLInputElement>("main input[type=search]")?.focus() },
    { title: "Next span of the same name", keys: ".", run: () => same(1) },
    { title: "Previous span of the same name", keys: ",", run: () => same(-1) },
  ];
  const ofRanges: readonly Command[] = [
    { title: "Mark: select the time of the selected span, or everything visible", keys: "M", run: mark },
    { title: drag === "select" ? "Drag to pan" : "Drag to select", run: () => dragging(drag === "select" ? "pan" : "select") },
    ...(selected === null ? [] : [{ title: "Flame graph of the selection", run: () => props.change({ table: "flame" }, false) }, { title: "Clear the selection", run: () => select(null) }]),
  ];
  const commands = useRef<() => readonly Command[]>(() => []);
  commands.current = () => [
    ...(knowsSpans(run.id) ? ofSpans : []),
    ...(isStatic ? [] : ofRanges),
    { title: "Zoom in", keys: "W", run: zoomIn },
    { title: "Zoom out", keys: "S", run: zoomOut },
    { title: "Show everything", keys: "0", run: () => stage.current?.show(whole) },
    { title: "Focus on the selected span or range", keys: "F", run: fill },
    { title: "Write a note", keys: "T", run: note },
    { title: "Keys of the timeline", keys: "?", run: () => setHelp(true) },
    ...info.steps.map((band) => ({ title: `Step ${band.name}`, run: () => stage.current?.show({ from: band.begin, to: band.end }) })),
    ...info.tracks.map((track) => ({ title: `Track ${track.process}, ${track.name}`, run: () => reach({ track: track.id, depth: 0 }) })),
  ];
  useEffect(() => provide(() => commands.current()), []);

  return (
    <>
      <div class="tabs">
        <SearchField run={run.id} search={search} onWanted={searchFor} />
        <button type="button" onClick={zoomIn} aria-label="Zoom in">+</button>
        <button type="button" onClick={zoomOut} aria-label="Zoom out">−</button>
        <button type="button" onClick={() => stage.current?.show(whole)}>All</button>
        {!isStatic && (
          <>
            <button type="button" onClick={() => select(stage.current?.seen ?? whole)}>Summarise view</button>
            <span class="quiet">Drag to</span>
            <span role="group" aria-label="Drag to" class="switch">
              {(["pan", "select"] as const).map((name) => (
                <button key={name} type="button" aria-pressed={drag === name} title={name === "pan" ? "Drag pans, Shift and drag selects" : "Drag selects, Shift and drag pans"} onClick={() => dragging(name)}>{name === "pan" ? "pan" : "select"}</button>
              ))}
            </span>
          </>
        )}
        <button type="button" onClick={openPalette} title="All commands">Ctrl K</button>
        <button type="button" onClick={() => setHelp(true)} aria-label="Keys">?</button>
        <span class="quiet">{duration(Math.round(length))} visible</span>
        {info.hidden > 0 && <span class="quiet">{info.hidden} spans are nested too deeply to be drawn</span>}
      </div>
      {problem !== null && <div class="problem" role="alert"><p>{problem}</p></div>}
      <div class="canvas with-map">
        <div ref={scroller} class="stage" tabIndex={0} role="region" aria-label="Tracks" style={{ height }}>
          <div style={{ height: `${layout.height}px` }}>
            <canvas ref={canvas} role="img" aria-label={`Timeline of ${info.tracks.length} tracks`} style={{ height }} />
          </div>
        </div>
        <div class="minimap" aria-hidden="true">
          <canvas ref={strip} />
        </div>
        {hover !== null && (
          <Tooltip of={canvas.current} x={hover.x} y={hover.y}>
            {hover.found.value !== null ? `${hover.found.name}: ${withUnit(hover.found.value, hover.found.info.unit)}` : `${hover.found.count > 1 ? `${hover.found.count} spans` : hover.found.name}, ${duration(hover.found.end - hover.found.begin)}`}
          </Tooltip>
        )}
      </div>
      {asked !== null && (
        <Dock height={dock} onHeight={resize}>
          <Answer loaded={details}>{(value) => <SpanCard run={run.id} details={value} to={props.to} onLink={follow} onCaller={follow} onSame={same} onClose={letGo} />}</Answer>
        </Dock>
      )}
      {selected !== null && !isStatic && <RangeTables run={run.id} range={selected} table={parameters["table"] ?? "all"} flameHref={flameHref} onTable={(table) => props.change({ table }, false)} onClose={() => select(null)} />}
      <TrackList tracks={info.tracks} arrangement={arrangement} onFold={fold} onClose={close} onPin={pin} onPins={pins} onGo={(track) => reach({ track, depth: 0 })} />
      <NoteList notes={notes} onGo={({ at }) => reveal({ track: -1, depth: 0, begin: at, end: at })} onRemove={(gone) => write(notes.filter((known) => known !== gone))} />
      {noting !== null && <NoteDialog at={noting} onText={(text) => write([...notes, { at: noting, text }])} onClose={() => setNoting(null)} />}
      {help && <KeyHelp onClose={() => setHelp(false)} />}
    </>
  );
}
