// Draws tracks of spans on a canvas and says what is under a point. It asks nobody for anything: the view gives it data.

import { prefersDark, spanColour } from "../base/colour";
import { duration } from "../base/units";
import type { Band, Spans, TimelineInfo, TrackInfo, TrackSpans } from "../data/api";
import { fitted, sheet } from "./canvas";

export const ROW = 17;
const RULER = 34;
const HEAD = 18;
const FOLDED_ROWS = 1;

export interface Range {
  from: number;
  to: number;
}

/** An arrow from the chosen span to another. */
export interface Arrow {
  from: { span: number; time: number };
  to: { span: number; time: number };
}

export interface Scene {
  arrows: readonly Arrow[];
  info: TimelineInfo;
  spans: Spans | null;
  seen: Range;
  selected: Range | null;
  span: number | null;
  folded: ReadonlySet<number>;
  hits: ReadonlySet<number>;
}

export interface Found {
  track: TrackInfo;
  name: string;
  category: string;
  begin: number;
  end: number;
  span: number;
  count: number;
}

function rowsOf(scene: Scene, track: TrackInfo): number {
  return scene.folded.has(track.id) ? Math.min(FOLDED_ROWS, track.depth) : track.depth;
}

/** Where each track begins, and where all end. */
function layout(scene: Scene): { tops: number[]; height: number } {
  let top = RULER;
  const tops = scene.info.tracks.map((track) => {
    const here = top;
    top += HEAD + rowsOf(scene, track) * ROW + 4;
    return here;
  });
  return { tops, height: top };
}

/** A step of the ruler: 1, 2 or 5 times a power of ten. */
function tick(length: number, count: number): number {
  const rough = length / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough) ?? power * 10;
}

export function draw(canvas: HTMLCanvasElement, scene: Scene): void {
  const { tops, height } = layout(scene);
  const paper = sheet(canvas, height);
  if (paper === null) return;
  const { context, width } = paper;
  const dark = prefersDark();
  const [text, quiet, line] = dark ? ["#e6e8ec", "#a2aab8", "#353a45"] : ["#1b1f27", "#5a6270", "#d5d9e0"];
  const scale = width / Math.max(1, scene.seen.to - scene.seen.from);
  const x = (time: number) => (time - scene.seen.from) * scale;
  context.font = "11px ui-monospace, monospace";
  context.textBaseline = "middle";
  drawSteps(context, scene.info.steps, x, width, height, dark, quiet);
  const step = tick(scene.seen.to - scene.seen.from, width / 110);
  for (let time = Math.ceil((scene.seen.from - scene.info.begin) / step) * step + scene.info.begin; time < scene.seen.to; time += step) {
    context.fillStyle = line;
    context.fillRect(x(time), 0, 1, height);
    context.fillStyle = quiet;
    context.fillText(duration(time - scene.info.begin), x(time) + 3, 9);
  }
  const drawn = new Map((scene.spans?.tracks ?? []).map((track) => [track.id, track]));
  let process = "";
  scene.info.tracks.forEach((track, place) => {
    const top = tops[place] ?? 0;
    context.fillStyle = line;
    context.fillRect(0, top, width, 1);
    context.fillStyle = text;
    const title = `${scene.folded.has(track.id) ? "▸" : "▾"} ${track.process === process ? "" : `${track.process} · `}${track.name}`;
    process = track.process;
    context.fillText(title, 4, top + HEAD / 2 + 1);
    const spans = drawn.get(track.id);
    if (spans !== undefined) drawTrack(context, scene, spans, top + HEAD, rowsOf(scene, track), x, width, dark, text);
  });
  drawArrows(context, scene, tops, x);
  if (scene.selected !== null) {
    const [left, right] = [x(scene.selected.from), x(scene.selected.to)];
    context.fillStyle = dark ? "rgba(138,180,255,.16)" : "rgba(26,86,196,.12)";
    context.fillRect(left, 0, right - left, height);
  }
}

function drawSteps(context: CanvasRenderingContext2D, steps: readonly Band[], x: (time: number) => number, width: number, height: number, dark: boolean, quiet: string): void {
  steps.forEach((step, place) => {
    const left = Math.max(0, x(step.begin));
    const right = Math.min(width, x(step.end));
    if (right <= 0 || left >= width || right - left < 1) return;
    if (place % 2 === 0) {
      context.fillStyle = dark ? "rgba(255,255,255,.04)" : "rgba(0,0,0,.035)";
      context.fillRect(left, 0, right - left, height);
    }
    context.fillStyle = quiet;
    context.fillText(fitted(`Step ${step.name}`, right - left), left + 3, 25);
  });
}

function drawTrack(context: CanvasRenderingContext2D, scene: Scene, spans: TrackSpans, top: number, rows: number, x: (time: number) => number, width: number, dark: boolean, text: string): void {
  const names = scene.spans?.names ?? [];
  for (let place = 0; place < spans.begin.length; place++) {
    const row = spans.depth[place] ?? 0;
    if (row >= rows) continue;
    const left = Math.max(0, x(spans.begin[place] ?? 0));
    const right = Math.min(width, x(spans.end[place] ?? 0));
    const wide = Math.max(1, right - left);
    if (right < 0 || left > width) continue;
    const name = names[spans.name[place] ?? 0] ?? "";
    const span = spans.span[place] ?? -1;
    context.fillStyle = spanColour(name, scene.info.categories[spans.category[place] ?? 0] ?? "", dark);
    const y = top + row * ROW;
    context.fillRect(left, y, wide > 3 ? wide - 0.5 : wide, ROW - 1);
    if (span >= 0 && (span === scene.span || scene.hits.has(span))) {
      context.strokeStyle = span === scene.span ? "#e8710a" : text;
      context.lineWidth = span === scene.span ? 2 : 1;
      context.strokeRect(left + 0.5, y + 0.5, Math.max(2, wide - 1), ROW - 2);
    }
    if (wide > 24) {
      context.fillStyle = text;
      const count = spans.count[place] ?? 1;
      context.fillText(fitted(count > 1 ? `${count} spans` : name, wide), left + 3, y + ROW / 2);
    }
  }
}

/** Where a span is drawn: the middle of its row; nothing when it is too small to be drawn by itself. */
function heightOf(scene: Scene, tops: readonly number[], span: number): number | null {
  for (const track of scene.spans?.tracks ?? []) {
    const place = track.span.indexOf(span);
    const shown = scene.info.tracks.findIndex((known) => known.id === track.id);
    const info = scene.info.tracks[shown];
    if (place < 0 || info === undefined) continue;
    const row = Math.min(track.depth[place] ?? 0, rowsOf(scene, info) - 1);
    return (tops[shown] ?? 0) + HEAD + row * ROW + ROW / 2;
  }
  return null;
}

function drawArrows(context: CanvasRenderingContext2D, scene: Scene, tops: readonly number[], x: (time: number) => number): void {
  context.strokeStyle = context.fillStyle = "#e8710a";
  context.lineWidth = 1.5;
  for (const arrow of scene.arrows) {
    const [top, bottom] = [heightOf(scene, tops, arrow.from.span), heightOf(scene, tops, arrow.to.span)];
    if (top === null || bottom === null) continue;
    const [left, right] = [x(arrow.from.time), x(arrow.to.time)];
    context.beginPath();
    context.moveTo(left, top);
    context.bezierCurveTo((left + right) / 2, top, (left + right) / 2, bottom, right - 5, bottom);
    context.stroke();
    context.beginPath();
    context.moveTo(right, bottom);
    context.lineTo(right - 6, bottom - 3);
    context.lineTo(right - 6, bottom + 3);
    context.fill();
  }
}

/** The track whose title is at a height. */
export function trackAt(scene: Scene, y: number): TrackInfo | null {
  const { tops } = layout(scene);
  return scene.info.tracks.find((_, place) => y >= (tops[place] ?? 0) && y < (tops[place] ?? 0) + HEAD) ?? null;
}

/** What is drawn at a point. */
export function at(canvas: HTMLCanvasElement, scene: Scene, pointX: number, pointY: number): Found | null {
  const { tops } = layout(scene);
  const place = scene.info.tracks.findIndex((track, index) => pointY >= (tops[index] ?? 0) + HEAD && pointY < (tops[index] ?? 0) + HEAD + rowsOf(scene, track) * ROW);
  const track = scene.info.tracks[place];
  const spans = scene.spans?.tracks.find((known) => known.id === track?.id);
  if (track === undefined || spans === undefined || scene.spans === null) return null;
  const row = Math.floor((pointY - (tops[place] ?? 0) - HEAD) / ROW);
  const pixel = (scene.seen.to - scene.seen.from) / Math.max(1, canvas.clientWidth);
  const time = scene.seen.from + pointX * pixel;
  for (let index = 0; index < spans.begin.length; index++) {
    const [begin, end] = [spans.begin[index] ?? 0, spans.end[index] ?? 0];
    if (spans.depth[index] !== row || time < begin - pixel || time > Math.max(end, begin + pixel)) continue;
    return {
      track,
      name: scene.spans.names[spans.name[index] ?? 0] ?? "",
      category: scene.info.categories[spans.category[index] ?? 0] ?? "",
      begin,
      end,
      span: spans.span[index] ?? -1,
      count: spans.count[index] ?? 1,
    };
  }
  return null;
}
