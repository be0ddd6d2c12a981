// Mouse and fingers on a timeline. Drag moves and Shift and drag selects, or the other way round; the edges of what is selected can be dragged. The
// wheel with Ctrl zooms; one finger moves, two zoom. Up and down scrolls as everywhere.

import type { Area, Range } from "./timeline_canvas";
import { RULER, tracksBetween } from "./timeline_layout";
import type { Stage } from "./timeline_stage";

export interface Gestures {
  /** While a range is being selected; `done` when it is. */
  select: (area: Area, done: boolean) => void;
  /** Whether a drag without Shift selects. */
  selects: () => boolean;
  hover: (point: { x: number; y: number } | null) => void;
  click: (x: number, y: number) => void;
}

interface Begun {
  x: number;
  y: number;
  range: Range;
  scroll: number;
  selects: boolean;
  /** The end that stays while the other one is dragged, and the tracks. */
  held: { stays: number; tracks: readonly number[] | null } | null;
  moved: boolean;
  /** Distance and middle of two fingers. */
  apart: number;
  middle: number;
}

const STILL = 3;
/** So near to an edge of what is selected a drag moves that edge. */
const EDGE = 5;
/** A drag that goes less far up or down selects all tracks. */
const FLAT = 14;

/** Listens until the returned function is called. */
export function listen(stage: Stage, scroller: HTMLElement, gestures: Gestures): () => void {
  const element = stage.canvas;
  const fingers = new Map<number, { x: number; y: number }>();
  let begun: Begun | null = null;
  const place = (event: PointerEvent | WheelEvent) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const two = () => {
    const [one, other] = [...fingers.values()];
    return one === undefined || other === undefined ? { apart: 0, middle: 0 } : { apart: Math.abs(one.x - other.x), middle: (one.x + other.x) / 2 };
  };
  const time = (x: number, range: Range) => range.from + (x / Math.max(1, stage.painter.width)) * (range.to - range.from);
  const begin = (point: { x: number; y: number }, selects: boolean, moved: boolean) => {
    begun = { ...point, range: stage.seen, scroll: scroller.scrollTop, selects, held: null, moved, ...two() };
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const point = place(event);
    fingers.set(event.pointerId, point);
    element.setPointerCapture(event.pointerId);
    const mouse = event.pointerType === "mouse";
    // The ruler is there to select time.
    begin(point, point.y < RULER || event.shiftKey !== (mouse && gestures.selects()), fingers.size > 1);
    const area = stage.scene.selected;
    const edge = edgeAt(point.x);
    if (begun !== null && area !== null && edge !== null && fingers.size === 1) begun.held = { stays: edge === "from" ? area.to : area.from, tracks: area.tracks };
    gestures.hover(null);
  };
  /** The edge of what is selected that is held at a place. */
  const edgeAt = (x: number): "from" | "to" | null => {
    const area = stage.scene.selected;
    if (area === null) return null;
    const away = (moment: number) => Math.abs(((moment - stage.seen.from) / Math.max(1, stage.seen.to - stage.seen.from)) * stage.painter.width - x);
    const [from, to] = [away(area.from), away(area.to)];
    return Math.min(from, to) > EDGE ? null : from < to ? "from" : "to";
  };
  const selected = (now: Begun, point: { x: number; y: number }): Area => {
    const [one, other] = [now.held?.stays ?? time(now.x, now.range), time(point.x, now.range)];
    const { layout, scroll } = stage.scene;
    const all = now.y < RULER || Math.abs(point.y - now.y) < FLAT;
    const tracks = now.held !== null ? now.held.tracks : all ? null : tracksBetween(layout, scroll, stage.painter.height, now.y, point.y);
    return { from: Math.min(one, other), to: Math.max(one, other), tracks: tracks?.length === 0 ? null : tracks };
  };
  const moved = (event: PointerEvent) => {
    const point = place(event);
    stage.pointer = event.pointerType === "mouse" ? point.x / Math.max(1, stage.painter.width) : null;
    if (begun === null || !fingers.has(event.pointerId)) {
      element.style.cursor = edgeAt(point.x) !== null ? "ew-resize" : gestures.selects() ? "crosshair" : "";
      gestures.hover(point);
      return;
    }
    fingers.set(event.pointerId, point);
    if (Math.hypot(point.x - begun.x, point.y - begun.y) > STILL) begun.moved = true;
    if (!begun.moved) return;
    const { range } = begun;
    if (fingers.size > 1) {
      // What was between the fingers stays between them.
      const { apart, middle } = two();
      const length = (range.to - range.from) * (begun.apart / Math.max(10, apart));
      const from = time(begun.middle, range) - (middle / Math.max(1, stage.painter.width)) * length;
      stage.show({ from, to: from + length });
    } else if (begun.selects || begun.held !== null) {
      gestures.select(selected(begun, point), false);
    } else {
      const shift = ((begun.x - point.x) / Math.max(1, stage.painter.width)) * (range.to - range.from);
      stage.show({ from: range.from + shift, to: range.to + shift });
      if (event.pointerType === "mouse") scroller.scrollTop = begun.scroll + begun.y - point.y;
    }
  };
  const up = (event: PointerEvent) => {
    if (!fingers.delete(event.pointerId) || begun === null) return;
    const point = place(event);
    if (event.type === "pointerup" && !begun.moved) gestures.click(point.x, point.y);
    if ((begun.selects || begun.held !== null) && begun.moved) gestures.select(selected(begun, point), true);
    const left = [...fingers.values()][0];
    if (left === undefined) begun = null;
    else begin(left, false, true);
  };
  const wheel = (event: WheelEvent) => {
    const across = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      stage.zoom(Math.exp(event.deltaY * 0.003), place(event).x / Math.max(1, stage.painter.width));
    } else if (across !== 0) {
      event.preventDefault();
      stage.move(across / Math.max(1, stage.painter.width));
    }
  };
  const left = () => {
    stage.pointer = null;
    gestures.hover(null);
  };
  const listeners: readonly [string, EventListener][] = [
    ["pointerdown", down as EventListener],
    ["pointermove", moved as EventListener],
    ["pointerup", up as EventListener],
    ["pointercancel", up as EventListener],
    ["pointerleave", left],
    ["wheel", wheel as EventListener],
  ];
  for (const [name, listener] of listeners) element.addEventListener(name, listener, { passive: false });
  return () => {
    for (const [name, listener] of listeners) element.removeEventListener(name, listener);
  };
}
