// What is drawn over the pixels of a timeline: the ruler, names, titles of tracks, the chosen span, its arrows, the selected range.

import { moment, shown as withUnit } from "../base/units";
import { fitted, FONT } from "./canvas";
import type { Area, Arrow, Mark, Range, Scene } from "./timeline_canvas";
import { HEAD, ROW, rowOf, RULER, seenLines, type Layout } from "./timeline_layout";

/** The name of a rectangle that is wide enough. */
export interface Label {
  x: number;
  y: number;
  width: number;
  text: string;
}

const CHOSEN = "#e8710a";
const ARROW = "#c2410c";

/** The first tick of the ruler and the time between two: 1, 2 or 5 times a power of ten. */
export function tickOf(seen: Range, width: number): { first: number; step: number } {
  const rough = (seen.to - seen.from) / Math.max(1, width / 110);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? power * 10;
  return { first: Math.ceil(seen.from / step) * step, step };
}

/** The ticks of what is seen, counted from where the ruler begins. */
export function ticksOf({ seen, origin }: Pick<Scene, "seen" | "origin">, width: number): { first: number; step: number } {
  const { first, step } = tickOf({ from: seen.from - origin, to: seen.to - origin }, width);
  return { first: first + origin, step };
}

export function drawMarks(context: CanvasRenderingContext2D, scene: Scene, width: number, height: number, labels: readonly Label[]): void {
  const [text, quiet, back] = scene.dark ? ["#e6e8ec", "#a2aab8", "#16181d"] : ["#1b1f27", "#5a6270", "#ffffff"];
  const scale = width / Math.max(1, scene.seen.to - scene.seen.from);
  const x = (time: number) => (time - scene.seen.from) * scale;
  context.font = FONT;
  context.textBaseline = "middle";
  context.fillStyle = text;
  for (const label of labels) {
    const written = fitted(label.text, label.width);
    if (written !== "") context.fillText(written, label.x + 3, label.y);
  }
  const top = RULER + scene.layout.pinnedHeight;
  context.save();
  context.beginPath();
  context.rect(0, RULER, width, height - RULER);
  context.clip();
  for (const { line, y } of seenLines(scene.layout, scene.scroll, height)) {
    if (!line.pinned && y < top) continue;
    context.fillStyle = text;
    const sign = line.folded ? "▸" : "▾";
    const title = line.track === null ? `${sign} ${line.group}` : `   ${sign} ${line.pinned ? `${line.group} · ` : ""}${line.track.name}`;
    context.font = line.track === null ? `bold ${FONT}` : FONT;
    context.fillText(title, 4, y + HEAD / 2 + 1);
    if (line.track === null) continue;
    context.fillStyle = quiet;
    const note = line.track.kind === "counter" ? `at most ${withUnit(line.track.most, line.track.unit)}  ` : "";
    context.textAlign = "right";
    context.fillText(`${note}${line.pinned ? "unpin" : "pin"}`, width - 6, y + HEAD / 2 + 1);
    context.textAlign = "left";
  }
  if (scene.mark !== null) drawMark(context, scene, scene.mark, x, height, width);
  drawArrows(context, scene, x, width);
  context.restore();
  drawRuler(context, scene, x, width, [text, quiet, back]);
  drawNotes(context, scene, x, width, height, back);
  if (scene.selected !== null) drawSelected(context, scene, scene.selected, x, width, height);
}

/** The selected time, of all tracks or of some, with edges to hold. */
function drawSelected(context: CanvasRenderingContext2D, scene: Scene, area: Area, x: (time: number) => number, width: number, height: number): void {
  const [left, right] = [Math.max(-2, x(area.from)), Math.min(width + 2, x(area.to))];
  if (right < left) return;
  const [colour, fill] = scene.dark ? ["#8ab4ff", "rgba(138,180,255,.18)"] : ["#1a56c4", "rgba(26,86,196,.13)"];
  context.fillStyle = fill;
  if (area.tracks === null) context.fillRect(left, RULER, right - left, height - RULER);
  else {
    for (const { line, y } of seenLines(scene.layout, scene.scroll, height)) {
      const top = Math.max(y, line.pinned ? RULER : RULER + scene.layout.pinnedHeight);
      if (line.track !== null && area.tracks.includes(line.track.id)) context.fillRect(left, top, right - left, y + line.height - top);
    }
  }
  context.fillRect(left, 0, right - left, RULER - 1);
  context.fillStyle = colour;
  for (const edge of [left, right]) {
    context.fillRect(edge - 0.5, 0, 1, height);
    context.fillRect(edge - 2.5, RULER - 17, 5, 14);
  }
}

function drawRuler(context: CanvasRenderingContext2D, scene: Scene, x: (time: number) => number, width: number, [text, quiet, back]: readonly string[]): void {
  context.font = FONT;
  context.fillStyle = back ?? "";
  context.fillRect(0, 0, width, RULER - 1);
  context.fillStyle = quiet ?? "";
  const { first, step } = ticksOf(scene, width);
  for (let time = first; time < scene.seen.to; time += step) context.fillText(moment(time - scene.origin, step), x(time) + 3, 9);
  context.fillStyle = text ?? "";
  for (const band of scene.info.steps) {
    if (band.end < scene.seen.from || band.begin > scene.seen.to) continue;
    const [left, right] = [Math.max(0, x(band.begin)), Math.min(width, x(band.end))];
    const name = fitted(`Step ${band.name}`, right - left);
    if (name === "") continue;
    context.fillRect(left, 18, 1, 14);
    context.fillText(name, left + 4, 25);
  }
}

/** A line down from the ruler for each note, with its words as far as there is room before the next one. */
function drawNotes(context: CanvasRenderingContext2D, scene: Scene, x: (time: number) => number, width: number, height: number, back: string | undefined): void {
  const colour = scene.dark ? "#f0b429" : "#8a5a00";
  for (const [place, note] of scene.notes.entries()) {
    const left = x(note.at);
    if (left < 0 || left > width) continue;
    const next = scene.notes[place + 1];
    const room = Math.min(width, next === undefined ? width : x(next.at)) - left;
    const text = fitted(note.text, room);
    context.fillStyle = back ?? "";
    if (text !== "") context.fillRect(left, 0, Math.min(room, context.measureText(text).width + 8), 17);
    context.fillStyle = colour;
    context.fillRect(left, 0, 1, height);
    context.fillText(text, left + 4, 9);
  }
}

function drawMark(context: CanvasRenderingContext2D, scene: Scene, mark: Mark, x: (time: number) => number, height: number, width: number): void {
  const y = rowOf(scene.layout, scene.scroll, mark);
  if (y === null || y > height || y + ROW < RULER) return;
  const [left, right] = [Math.max(-2, x(mark.begin)), Math.min(width + 2, x(mark.end))];
  context.strokeStyle = CHOSEN;
  context.lineWidth = 2;
  context.strokeRect(left, y, Math.max(2, right - left), ROW - 1);
}

/** Many arrows are thin and pale, so that what is below them is seen. */
export function strokeOf(arrows: number): { width: number; alpha: number } {
  if (arrows <= 4) return { width: 1.5, alpha: 1 };
  return arrows <= 12 ? { width: 1, alpha: 0.8 } : { width: 0.6, alpha: 0.55 };
}

/** Further out than this nothing is seen of a curve, and a browser may draw it wrongly. */
const FAR = 20_000;

export interface Ends {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Where an arrow leaves and arrives: the beginnings of both spans, in the middle of their rows, in sight or not. */
export function arrowEnds(layout: Layout, scroll: number, arrow: Arrow, x: (time: number) => number): Ends | null {
  const [from, to] = [rowOf(layout, scroll, arrow.from), rowOf(layout, scroll, arrow.to)];
  if (from === null || to === null) return null;
  const across = (time: number) => Math.max(-FAR, Math.min(FAR, x(time)));
  return { left: across(arrow.from.begin), top: from + ROW / 2, right: across(arrow.to.begin), bottom: to + ROW / 2 };
}

function drawArrows(context: CanvasRenderingContext2D, scene: Scene, x: (time: number) => number, width: number): void {
  const stroke = strokeOf(scene.arrows.length);
  const drawn = new Set<string>();
  context.strokeStyle = context.fillStyle = ARROW;
  context.lineWidth = stroke.width;
  context.globalAlpha = stroke.alpha;
  for (const arrow of scene.arrows) {
    const ends = arrowEnds(scene.layout, scene.scroll, arrow, x);
    if (ends === null || Math.max(ends.left, ends.right) < 0 || Math.min(ends.left, ends.right) > width) continue;
    // One of several that would lie over each other.
    const key = [ends.left, ends.top, ends.right, ends.bottom].map(Math.round).join(" ");
    if (!drawn.has(key)) drawArrow(context, ends);
    drawn.add(key);
  }
  context.globalAlpha = 1;
}

function drawArrow(context: CanvasRenderingContext2D, { left, top, right, bottom }: Ends): void {
  context.beginPath();
  context.arc(left, top, 2, 0, 2 * Math.PI);
  context.fill();
  context.beginPath();
  context.moveTo(left, top);
  // Between spans of one row it swings out, so that their names stay readable.
  const swing = top === bottom ? ROW * 1.5 : 0;
  context.bezierCurveTo((left + right) / 2, top + swing, (left + right) / 2, bottom + swing, right - 5, bottom);
  context.stroke();
  context.beginPath();
  context.moveTo(right, bottom);
  context.lineTo(right - 6, bottom - 3);
  context.lineTo(right - 6, bottom + 3);
  context.fill();
}
