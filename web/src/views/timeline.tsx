// Timeline: every thread and stream over time. The range that is seen, the one that is selected and the span are in the address.
//
// Mouse: drag moves, wheel with Ctrl zooms, Shift and drag selects, a click shows a span. Touch: one finger moves, two zoom.
// Keys: W and S zoom, A and D move, N and P go through what was searched, Escape lets go.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration } from "../base/units";
import type { Hits, SpanDetails, Spans, TableData, TimelineInfo } from "../data/api";
import { ask, useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { SpanCard } from "../widgets/span_card";
import { Table } from "../widgets/table";
import { at, draw, trackAt, type Arrow, type Found, type Range, type Scene } from "../widgets/timeline_canvas";
import type { ViewProperties } from "./view";

export function Timeline(props: ViewProperties) {
  const loaded = useAnswer<TimelineInfo>(`run/${props.run.id}/timeline`);
  return (
    <Answer loaded={loaded}>
      {(info) => (info.tracks.length === 0 ? <Empty record={info.record} /> : <Tracks {...props} info={info} />)}
    </Answer>
  );
}

const DEEP = 12;
/** A span that is gone to fills this part of what is seen. */
const AROUND = 8;

function clamp(range: Range, info: TimelineInfo): Range {
  const whole = Math.max(1, info.end - info.begin);
  const length = Math.min(whole * 1.05, Math.max(20, range.to - range.from));
  const from = Math.min(Math.max(range.from, info.begin - whole * 0.025), info.end + whole * 0.025 - length);
  return { from, to: from + length };
}

/** From a call to what it launched, whichever of the two was chosen. */
function arrowsOf(details: SpanDetails): Arrow[] {
  const own = { span: details.id, time: details.begin };
  return details.linked.map((link) => {
    const other = { span: link.span, time: link.begin };
    return link.relation === "launched" ? { from: own, to: other } : { from: other, to: own };
  });
}

function number(text: string | undefined): number | null {
  const value = text === undefined || text === "" ? NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

function Tracks(props: ViewProperties & { info: TimelineInfo }) {
  const { info, parameters, run } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [from, to] = [number(parameters["from"]), number(parameters["to"])];
  const whole = { from: info.begin, to: info.end };
  const [seen, setSeen] = useState<Range>(clamp(from === null || to === null ? whole : { from, to }, info));
  const [spans, setSpans] = useState<Spans | null>(null);
  const [folded, setFolded] = useState<ReadonlySet<number>>(() => new Set(info.tracks.filter((track) => track.depth > DEEP * 4).map((track) => track.id)));
  const [hover, setHover] = useState<{ found: Found; x: number; y: number } | null>(null);
  const text = parameters["search"] ?? "";
  const span = number(parameters["span"]);
  const selected = useMemo(() => {
    const [begin, end] = [number(parameters["begin"]), number(parameters["end"])];
    return begin === null || end === null ? null : { from: begin, to: end };
  }, [parameters["begin"], parameters["end"]]);
  const hits = useAnswer<Hits>(text === "" ? null : `run/${run.id}/search?text=${encodeURIComponent(text)}`);
  const found = hits.state === "ready" ? hits.value : null;
  const marked = useMemo(() => new Set((found?.hits ?? []).map((hit) => hit.span)), [found]);
  const details = useAnswer<SpanDetails>(span === null ? null : `run/${run.id}/span/${span}`);
  const within = useAnswer<TableData>(selected === null ? null : `run/${run.id}/within?from=${Math.round(selected.from)}&to=${Math.round(selected.to)}`);
  const arrows = useMemo(() => (details.state === "ready" ? arrowsOf(details.value) : []), [details]);
  const scene: Scene = { arrows, info, spans, seen, selected, span, folded, hits: marked };
  const latest = useRef(scene);
  latest.current = scene;

  // What is asked for is a little wider than what is seen, so that moving shows something at once.
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(() => {
      const length = seen.to - seen.from;
      const width = (canvas.current?.clientWidth ?? 1000) * 2;
      const call = `run/${run.id}/spans?from=${Math.floor(seen.from - length / 2)}&to=${Math.ceil(seen.to + length / 2)}&width=${width}&tracks=${info.tracks.map((track) => track.id).join(",")}`;
      ask<Spans>(call, controller.signal).then(setSpans, () => undefined);
      props.change({ from: String(Math.round(seen.from)), to: String(Math.round(seen.to)) }, false);
    }, 60);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [seen, run.id]);

  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      if (canvas.current !== null) draw(canvas.current, scene);
    });
    return () => cancelAnimationFrame(frame);
  });

  useEffect(() => {
    const redraw = () => canvas.current !== null && draw(canvas.current, latest.current);
    addEventListener("resize", redraw);
    return () => removeEventListener("resize", redraw);
  }, []);

  const show = (range: Range) => setSeen(clamp(range, info));
  const zoom = (factor: number, centre = 0.5) => {
    const { from: left, to: right } = latest.current.seen;
    const point = left + (right - left) * centre;
    show({ from: point - (point - left) * factor, to: point + (right - point) * factor });
  };
  const move = (share: number) => {
    const { from: left, to: right } = latest.current.seen;
    show({ from: left + (right - left) * share, to: right + (right - left) * share });
  };
  const reveal = (begin: number, end: number) => {
    const length = Math.max(end - begin, 1000) * AROUND;
    show({ from: (begin + end - length) / 2, to: (begin + end + length) / 2 });
  };
  const next = (direction: 1 | -1) => {
    const list = found?.hits ?? [];
    if (list.length === 0) return;
    const place = list.findIndex((hit) => hit.span === span);
    const hit = list[place < 0 ? (direction > 0 ? 0 : list.length - 1) : (place + direction + list.length) % list.length];
    if (hit === undefined) return;
    props.change({ span: String(hit.span) }, false);
    reveal(hit.begin, hit.end);
  };

  // A link into the timeline may name a span or a moment without saying what to see around it. That is found once: afterwards
  // the address says what is seen.
  const placed = useRef(from !== null);
  useEffect(() => {
    const moment = number(parameters["at"]);
    if (placed.current || (span !== null && details.state === "waiting")) return;
    placed.current = true;
    if (details.state === "ready") reveal(details.value.begin, details.value.begin + details.value.duration);
    else if (moment !== null) reveal(moment, moment);
  }, [details.state]);

  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const writing = event.target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (writing || event.ctrlKey || event.metaKey || event.altKey) return;
      const actions: Record<string, () => void> = {
        w: () => zoom(0.7),
        s: () => zoom(1 / 0.7),
        a: () => move(-0.15),
        d: () => move(0.15),
        n: () => next(1),
        p: () => next(-1),
        Escape: () => props.change({ span: undefined, begin: undefined, end: undefined }, false),
      };
      actions[event.key.length === 1 ? event.key.toLowerCase() : event.key]?.();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });

  usePointer(canvas, latest, {
    show,
    zoom,
    select: (range) => props.change({ begin: String(Math.round(range.from)), end: String(Math.round(range.to)) }, false),
    hover: (point) => setHover(point),
    click: (x, y) => {
      if (canvas.current === null) return;
      const track = trackAt(latest.current, y);
      if (track !== null) {
        const changed = new Set(latest.current.folded);
        if (!changed.delete(track.id)) changed.add(track.id);
        setFolded(changed);
        return;
      }
      const hit = at(canvas.current, latest.current, x, y);
      if (hit === null) return;
      if (hit.span >= 0) props.change({ span: String(hit.span) }, false);
      else if (hit.count > 1) reveal(hit.begin, hit.end);
    },
  });

  return (
    <>
      <div class="tabs">
        <input type="search" placeholder="Search spans" aria-label="Search spans" value={text} onInput={(event) => props.change({ search: event.currentTarget.value === "" ? undefined : event.currentTarget.value }, false)} onKeyDown={(event) => event.key === "Enter" && next(event.shiftKey ? -1 : 1)} />
        {text !== "" && <span class="quiet" role="status" data-hits={found?.total}>{found === null ? "…" : `${found.total} found`}</span>}
        <button type="button" onClick={() => next(-1)} aria-label="Previous">‹</button>
        <button type="button" onClick={() => next(1)} aria-label="Next">›</button>
        <button type="button" onClick={() => zoom(0.6)} aria-label="Zoom in">+</button>
        <button type="button" onClick={() => zoom(1 / 0.6)} aria-label="Zoom out">−</button>
        <button type="button" onClick={() => show(whole)}>All</button>
        <button type="button" onClick={() => props.change({ begin: String(Math.round(seen.from)), end: String(Math.round(seen.to)) }, false)}>Tables of what is seen</button>
        <span class="quiet">{duration(Math.round(seen.to - seen.from))} seen · WASD move and zoom, Shift and drag selects</span>
        {info.hidden > 0 && <span class="quiet">{info.hidden} spans are nested too deeply to be drawn</span>}
      </div>
      <div class="canvas">
        <canvas ref={canvas} tabIndex={0} role="img" aria-label={`Timeline of ${info.tracks.length} threads and streams`} data-spans={spans?.tracks.reduce((sum, track) => sum + track.begin.length, 0)} />
        {hover !== null && (
          <div class="hover" style={{ left: `${Math.min(hover.x + 14, (canvas.current?.clientWidth ?? 600) - 320)}px`, top: `${hover.y + 16}px` }}>
            {hover.found.count > 1 ? `${hover.found.count} spans, ` : `${hover.found.name}, `}
            {duration(hover.found.end - hover.found.begin)}
          </div>
        )}
      </div>
      {span !== null && <Answer loaded={details}>{(value) => <SpanCard details={value} onSpan={(link) => { props.change({ span: String(link.span) }, false); reveal(link.begin, link.end); }} />}</Answer>}
      {selected !== null && (
        <Answer loaded={within}>{(table) => <Table table={{ ...table, title: `${table.title}: ${duration(Math.round(selected.to - selected.from))}` }} />}</Answer>
      )}
    </>
  );
}

interface Actions {
  show: (range: Range) => void;
  zoom: (factor: number, centre?: number) => void;
  select: (range: Range) => void;
  hover: (point: { found: Found; x: number; y: number } | null) => void;
  click: (x: number, y: number) => void;
}

/** Mouse and fingers on the canvas. */
function usePointer(canvas: { current: HTMLCanvasElement | null }, latest: { current: Scene }, actions: Actions): void {
  const current = useRef(actions);
  current.current = actions;
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const fingers = new Map<number, { x: number; y: number }>();
    let begun: { x: number; y: number; range: Range; selects: boolean; moved: boolean; apart: number } | null = null;
    const place = (event: PointerEvent | WheelEvent) => {
      const box = element.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const time = (x: number, range: Range) => range.from + (x / Math.max(1, element.clientWidth)) * (range.to - range.from);
    const apart = () => {
      const [one, two] = [...fingers.values()];
      return one === undefined || two === undefined ? 0 : Math.abs(one.x - two.x);
    };
    const down = (event: PointerEvent) => {
      const point = place(event);
      fingers.set(event.pointerId, point);
      element.setPointerCapture(event.pointerId);
      begun = { ...point, range: latest.current.seen, selects: event.shiftKey, moved: false, apart: apart() };
      current.current.hover(null);
    };
    const moved = (event: PointerEvent) => {
      const point = place(event);
      if (begun === null || !fingers.has(event.pointerId)) {
        const found = at(element, latest.current, point.x, point.y);
        current.current.hover(found === null ? null : { found, ...point });
        return;
      }
      fingers.set(event.pointerId, point);
      if (Math.abs(point.x - begun.x) > 3) begun.moved = true;
      const { range } = begun;
      if (fingers.size > 1 && begun.apart > 0) {
        const factor = begun.apart / Math.max(10, apart());
        const middle = (range.from + range.to) / 2;
        current.current.show({ from: middle - (middle - range.from) * factor, to: middle + (range.to - middle) * factor });
      } else if (begun.selects) {
        const [one, two] = [time(begun.x, range), time(point.x, range)];
        if (begun.moved) current.current.select({ from: Math.min(one, two), to: Math.max(one, two) });
      } else {
        const shift = ((begun.x - point.x) / Math.max(1, element.clientWidth)) * (range.to - range.from);
        current.current.show({ from: range.from + shift, to: range.to + shift });
      }
    };
    const up = (event: PointerEvent) => {
      fingers.delete(event.pointerId);
      if (begun !== null && !begun.moved) current.current.click(begun.x, begun.y);
      if (fingers.size === 0) begun = null;
    };
    const wheel = (event: WheelEvent) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        current.current.zoom(Math.exp(event.deltaY * 0.003), place(event).x / Math.max(1, element.clientWidth));
      } else if (event.deltaX !== 0) {
        event.preventDefault();
        const { seen } = latest.current;
        const shift = (event.deltaX / Math.max(1, element.clientWidth)) * (seen.to - seen.from);
        current.current.show({ from: seen.from + shift, to: seen.to + shift });
      }
    };
    const left = () => current.current.hover(null);
    element.addEventListener("pointerdown", down);
    element.addEventListener("pointermove", moved);
    element.addEventListener("pointerup", up);
    element.addEventListener("pointercancel", up);
    element.addEventListener("pointerleave", left);
    element.addEventListener("wheel", wheel, { passive: false });
    return () => {
      element.removeEventListener("pointerdown", down);
      element.removeEventListener("pointermove", moved);
      element.removeEventListener("pointerup", up);
      element.removeEventListener("pointercancel", up);
      element.removeEventListener("pointerleave", left);
      element.removeEventListener("wheel", wheel);
    };
  }, []);
}
