// Mouse and fingers on a timeline. Drag moves, Shift and drag selects, the wheel with Ctrl zooms; one finger moves, two zoom. Up and down scrolls as
// everywhere.

import type { Range } from "./timeline_canvas";
import type { Stage } from "./timeline_stage";

export interface Gestures {
  /** While a range is being selected; `done` when it is. */
  select: (range: Range, done: boolean) => void;
  hover: (point: { x: number; y: number } | null) => void;
  click: (x: number, y: number) => void;
}

interface Begun {
  x: number;
  y: number;
  range: Range;
  scroll: number;
  selects: boolean;
  moved: boolean;
  /** Distance and middle of two fingers. */
  apart: number;
  middle: number;
}

const STILL = 3;

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
    begun = { ...point, range: stage.seen, scroll: scroller.scrollTop, selects, moved, ...two() };
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const point = place(event);
    fingers.set(event.pointerId, point);
    element.setPointerCapture(event.pointerId);
    begin(point, event.shiftKey, fingers.size > 1);
    gestures.hover(null);
  };
  const selected = (now: Begun, x: number): Range => {
    const [one, other] = [time(now.x, now.range), time(x, now.range)];
    return { from: Math.min(one, other), to: Math.max(one, other) };
  };
  const moved = (event: PointerEvent) => {
    const point = place(event);
    if (begun === null || !fingers.has(event.pointerId)) {
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
    } else if (begun.selects) {
      gestures.select(selected(begun, point.x), false);
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
    if (begun.selects && begun.moved) gestures.select(selected(begun, point.x), true);
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
  const left = () => gestures.hover(null);
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
