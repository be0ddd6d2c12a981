// What is drawn over the pixels of a timeline: the ruler, names, titles of tracks, the chosen span, its arrows, the selected range.

import { moment, shown as withUnit } from "../base/units";
import { fitted } from "./canvas";
import type { Arrow, Mark, Range, Scene } from "./timeline_canvas";
import { HEAD, ROW, RULER, seenLines } from "./timeline_layout";

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

export function drawMarks(context: CanvasRenderingContext2D, scene: Scene, width: number, height: number, labels: readonly Label[]): void {
  const [text, quiet, back] = scene.dark ? ["#e6e8ec", "#a2aab8", "#16181d"] : ["#1b1f27", "#5a6270", "#ffffff"];
  const scale = width / Math.max(1, scene.seen.to - scene.seen.from);
  const x = (time: number) => (time - scene.seen.from) * scale;
  context.font = "11px ui-monospace, monospace";
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
    context.font = line.track === null ? "bold 11px ui-monospace, monospace" : "11px ui-monospace, monospace";
    context.fillText(title, 4, y + HEAD / 2 + 1);
    if (line.track === null) continue;
    context.fillStyle = quiet;
    const note = line.track.kind === "counter" ? `at most ${withUnit(line.track.most, line.track.unit)}  ` : "";
    context.textAlign = "right";
    context.fillText(`${note}${line.pinned ? "unpin" : "pin"}`, width - 6, y + HEAD / 2 + 1);
    context.textAlign = "left";
  }
  if (scene.mark !== null) drawMark(context, scene, scene.mark, x, height, width);
  context.strokeStyle = context.fillStyle = ARROW;
  context.lineWidth = 1.5;
  for (const arrow of scene.arrows) drawArrow(context, scene, arrow, x, height);
  context.restore();
  drawRuler(context, scene, x, width, [text, quiet, back]);
  if (scene.selected !== null) {
    const [left, right] = [Math.max(0, x(scene.selected.from)), Math.min(width, x(scene.selected.to))];
    context.fillStyle = scene.dark ? "rgba(138,180,255,.18)" : "rgba(26,86,196,.13)";
    if (right > left) context.fillRect(left, 0, right - left, height);
  }
}

function drawRuler(context: CanvasRenderingContext2D, scene: Scene, x: (time: number) => number, width: number, [text, quiet, back]: readonly string[]): void {
  context.font = "11px ui-monospace, monospace";
  context.fillStyle = back ?? "";
  context.fillRect(0, 0, width, RULER - 1);
  context.fillStyle = quiet ?? "";
  const { first, step } = tickOf(scene.seen, width);
  for (let time = first; time < scene.seen.to; time += step) context.fillText(moment(time, step), x(time) + 3, 9);
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

/** The height of a mark's row; a folded track shows all in its first. Nothing when its track is not in sight. */
function heightOf(scene: Scene, mark: Mark, height: number): number | null {
  const shown = seenLines(scene.layout, scene.scroll, height).findLast(({ line }) => line.track?.id === mark.track);
  if (shown === undefined) return null;
  return shown.y + HEAD + Math.min(mark.depth, Math.max(0, shown.line.lanes - 1)) * ROW;
}

function drawMark(context: CanvasRenderingContext2D, scene: Scene, mark: Mark, x: (time: number) => number, height: number, width: number): void {
  const y = heightOf(scene, mark, height);
  if (y === null) return;
  const [left, right] = [Math.max(-2, x(mark.begin)), Math.min(width + 2, x(mark.end))];
  context.strokeStyle = CHOSEN;
  context.lineWidth = 2;
  context.strokeRect(left, y, Math.max(2, right - left), ROW - 1);
}

/** From the beginning of one span to the beginning of another; where one is out of sight, to the edge. */
function drawArrow(context: CanvasRenderingContext2D, scene: Scene, arrow: Arrow, x: (time: number) => number, height: number): void {
  const [from, to] = [heightOf(scene, arrow.from, height), heightOf(scene, arrow.to, height)];
  if (from === null && to === null) return;
  const [top, bottom] = [(from ?? height) + ROW / 2, (to ?? height) + ROW / 2];
  const [left, right] = [x(arrow.from.begin), x(arrow.to.begin)];
  context.beginPath();
  context.moveTo(left, top);
  // Between spans of one row it swings out, so that their names stay readable.
  const swing = top === bottom ? ROW * 1.5 : 0;
  context.bezierCurveTo((left + right) / 2, top + swing, (left + right) / 2, bottom + swing, right - 5, bottom);
  context.stroke();
  if (to === null) return;
  context.beginPath();
  context.moveTo(right, bottom);
  context.lineTo(right - 6, bottom - 3);
  context.lineTo(right - 6, bottom + 3);
  context.fill();
}
