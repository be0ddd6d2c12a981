// Paints the tracks of a timeline, and says what is under a point. Rectangles are written into pixels directly: ten thousand of them take less than
// a millisecond that way, and tens when drawn one by one. Text and marks come over them: timeline_marks.ts.

import { packed, spanColour } from "../base/colour";
import type { Note } from "../base/notes";
import type { TimelineInfo, TrackInfo } from "../data/api";
import { NO_SPAN, type Looks, type TrackTile } from "../data/tile_bytes";
import type { Tiles } from "../data/tiles";
import { drawMarks, ticksOf, type Label } from "./timeline_marks";
import { HEAD, lineAt, ROW, RULER, seenLines, type Layout, type Shown } from "./timeline_layout";

export interface Range {
  from: number;
  to: number;
}

/** A stretch of time, of some tracks where it is not all. */
export interface Area extends Range {
  tracks: readonly number[] | null;
}

/** Where a span is drawn. */
export interface Mark {
  track: number;
  depth: number;
  begin: number;
  end: number;
}

export interface Arrow {
  from: Mark;
  to: Mark;
}

export interface Scene {
  info: TimelineInfo;
  tiles: Tiles;
  layout: Layout;
  seen: Range;
  scroll: number;
  /** What the ruler counts from. */
  origin: number;
  /** Words at moments. */
  notes: readonly Note[];
  selected: Area | null;
  mark: Mark | null;
  arrows: readonly Arrow[];
  /** What is searched for. */
  search: string;
  /** The names of what was found: all else is faded. */
  names: ReadonlySet<string> | null;
  dark: boolean;
}

export interface Found extends Mark {
  info: TrackInfo;
  name: string;
  category: string;
  /** -1 where it stands for several or is a sampled call. */
  span: number;
  count: number;
  /** Of a counter. */
  value: number | null;
}

/** Narrower rectangles have no text in them. */
const LABELLED = 30;
const MOST_LABELS = 600;

/** A canvas and the pixels it is painted from. */
export class Painter {
  private readonly context: CanvasRenderingContext2D | null;
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);
  private background = new Uint32Array(0);
  private ratio = 1;
  private labels: Label[] = [];
  width = 0;
  height = 0;

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d", { alpha: false });
  }

  /** Takes the size of the canvas on the page. */
  measure(): void {
    this.ratio = devicePixelRatio;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    const [wide, high] = [Math.max(1, Math.round(this.width * this.ratio)), Math.max(1, Math.round(this.height * this.ratio))];
    if (this.canvas.width === wide && this.canvas.height === high && this.image !== null) return;
    this.canvas.width = wide;
    this.canvas.height = high;
    this.image = new ImageData(wide, high);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.background = new Uint32Array(wide);
  }

  /** Paints the scene and says how many rectangles it took. */
  paint(scene: Scene): number {
    if (this.image === null || this.context === null) return 0;
    const { width: wide, height: high } = this.image;
    this.labels = [];
    this.paintBackground(scene);
    this.pixels.set(this.background);
    for (let filled = 1; filled < high; filled *= 2) this.pixels.copyWithin(filled * wide, 0, Math.min(filled, high - filled) * wide);
    let rectangles = 0;
    const top = RULER + scene.layout.pinnedHeight;
    for (const shown of seenLines(scene.layout, scene.scroll, this.height)) {
      rectangles += this.paintLine(scene, shown, shown.line.pinned ? RULER : top);
    }
    this.context.putImageData(this.image, 0, 0);
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    drawMarks(this.context, scene, this.width, this.height, this.labels);
    return rectangles;
  }

  /** One line of pixels with the steps as bands and the ticks of the ruler. */
  private paintBackground(scene: Scene): void {
    const { background } = this;
    const scale = background.length / Math.max(1, scene.seen.to - scene.seen.from);
    const x = (time: number) => Math.round((time - scene.seen.from) * scale);
    background.fill(packed(220, 0.1, scene.dark ? 0.105 : 1));
    const band = packed(220, 0.12, scene.dark ? 0.14 : 0.962);
    scene.info.steps.forEach((step, place) => {
      if (place % 2 === 0 && step.end > scene.seen.from && step.begin < scene.seen.to) background.fill(band, Math.max(0, x(step.begin)), Math.max(0, x(step.end)));
    });
    const line = packed(220, 0.12, scene.dark ? 0.22 : 0.9);
    const { first, step } = ticksOf(scene, this.width);
    for (let time = first; time < scene.seen.to; time += step) background[x(time)] = line;
  }

  private paintLine(scene: Scene, shown: Shown, clip: number): number {
    const { line, y } = shown;
    if (line.pinned) this.fill(0, y, this.background.length, line.height, null, clip);
    this.fill(0, y, this.background.length, 1 / this.ratio, packed(220, 0.12, scene.dark ? 0.25 : 0.84), clip);
    if (line.track === null) {
      this.fill(0, y, this.background.length, line.height, packed(220, 0.14, scene.dark ? 0.17 : 0.93), clip);
      return 0;
    }
    const { tiles, seen } = scene;
    const level = tiles.levelOf((seen.to - seen.from) / Math.max(1, this.background.length));
    const [first, last] = tiles.covering(level, seen.from, seen.to);
    let rectangles = 0;
    for (let index = first; index <= last; index++) {
      const tile = tiles.find(line.track.id, level, index);
      if (tile === null) continue;
      const part = { from: Math.max(seen.from, index * tiles.width(level)), to: Math.min(seen.to, (index + 1) * tiles.width(level)) };
      if (line.track.kind === "counter") rectangles += this.paintCounter(scene, shown, tile, part, clip);
      else for (let lane = 0; lane < line.lanes; lane++) rectangles += this.paintLane(scene, shown, lane, tile, part, clip);
    }
    return rectangles;
  }

  /** Fills a rectangle, whose place across is in pixels already, with a colour or with the background. */
  private fill(left: number, y: number, right: number, height: number, colour: number | null, clip: number): void {
    const wide = this.background.length;
    const first = Math.round(Math.max(y, clip) * this.ratio);
    const last = Math.min(Math.round((y + height) * this.ratio), this.pixels.length / wide);
    for (let row = first; row < last; row++) {
      if (colour === null) this.pixels.set(this.background, row * wide);
      else this.pixels.fill(colour, row * wide + left, row * wide + right);
    }
  }

  private paintLane(scene: Scene, shown: Shown, lane: number, tile: TrackTile, part: Range, clip: number): number {
    const y = shown.y + HEAD + lane * ROW;
    if (y + ROW <= clip || y >= this.height || lane + 1 >= tile.lanes.length) return 0;
    const wide = this.background.length;
    const firstRow = Math.round(Math.max(y, clip) * this.ratio);
    const lastRow = Math.min(Math.round((y + ROW - 1) * this.ratio), this.pixels.length / wide);
    if (lastRow <= firstRow) return 0;
    const row = this.pixels.subarray(firstRow * wide, (firstRow + 1) * wide);
    const { begin, end, look } = tile;
    const last = tile.lanes[lane + 1] ?? 0;
    const colours = coloursOf(tile.looks, scene);
    const { from } = scene.seen;
    const scale = wide / Math.max(1, scene.seen.to - from);
    const labelled = LABELLED * this.ratio;
    const start = firstEnding(end, tile.lanes[lane] ?? 0, last, part.from);
    let place = start;
    for (; place < last; place++) {
      const begins = begin[place] ?? 0;
      if (begins > part.to) break;
      const ends = end[place] ?? 0;
      const left = ((begins > part.from ? begins : part.from) - from) * scale | 0;
      let right = ((ends < part.to ? ends : part.to) - from) * scale | 0;
      const colour = colours[look[place] ?? 0] ?? 0;
      if (right - left <= 1) {
        row[left] = colour;
        // What goes on in the next tile is long, and has its name here.
        if (ends <= part.to) continue;
      }
      // A gap tells neighbours apart.
      if (right - left > 3 && ends <= part.to) right -= 1;
      row.fill(colour, left, right);
      const whole = ((ends < scene.seen.to ? ends : scene.seen.to) - from) * scale - left;
      if (whole >= labelled && y >= clip && (begins >= part.from || part.from === from) && this.labels.length < MOST_LABELS) {
        const count = tile.count[place] ?? 1;
        const text = count > 1 ? `${count} spans` : (tile.looks.list[look[place] ?? 0]?.name ?? "");
        this.labels.push({ x: left / this.ratio, y: y + ROW / 2, width: whole / this.ratio, text });
      }
    }
    const [x0, x1] = [Math.max(0, ((part.from - from) * scale) | 0), Math.min(wide, Math.ceil((part.to - from) * scale))];
    for (let next = firstRow + 1; next < lastRow; next++) this.pixels.copyWithin(next * wide + x0, firstRow * wide + x0, firstRow * wide + x1);
    return place - start;
  }

  private paintCounter(scene: Scene, shown: Shown, tile: TrackTile, part: Range, clip: number): number {
    const track = shown.line.track;
    if (track === null) return 0;
    const wide = this.background.length;
    const scale = wide / Math.max(1, scene.seen.to - scene.seen.from);
    const rows = Math.round((shown.line.height - HEAD - 4) * this.ratio);
    const span = Math.max(1e-9, track.most - track.least);
    const { time, value } = tile;
    const [x0, x1] = [Math.max(0, Math.floor((part.from - scene.seen.from) * scale)), Math.min(wide, Math.ceil((part.to - scene.seen.from) * scale))];
    // How high each column is, then row by row: one write for each pixel.
    const heights = new Uint16Array(Math.max(0, x1 - x0));
    let painted = 0;
    for (let place = 0; place < time.length; place++) {
      const ends = Math.min(time[place + 1] ?? part.to, part.to);
      const begins = Math.max(time[place] ?? 0, part.from);
      if (ends < part.from || begins > part.to) continue;
      const left = Math.max(0, Math.floor((begins - scene.seen.from) * scale) - x0);
      const right = Math.min(heights.length, Math.max(left + 1, Math.floor((ends - scene.seen.from) * scale) - x0));
      const high = Math.max(1, Math.round((((value[place] ?? 0) - track.least) / span) * rows));
      for (let column = left; column < right; column++) if ((heights[column] ?? 0) < high) heights[column] = high;
      painted += 1;
    }
    const colour = packed(185, 0.45, scene.dark ? 0.36 : 0.66);
    const bottom = Math.round((shown.y + HEAD) * this.ratio) + rows;
    const [first, last] = [Math.max(Math.round(clip * this.ratio), bottom - rows), Math.min(bottom, this.pixels.length / wide)];
    for (let row = first; row < last; row++) {
      const [start, least] = [row * wide + x0, bottom - row];
      for (let column = 0; column < heights.length; column++) if ((heights[column] ?? 0) >= least) this.pixels[start + column] = colour;
    }
    return painted;
  }

  /** What is painted at a point. */
  at(scene: Scene, x: number, y: number): Found | null {
    const shown = lineAt(scene.layout, scene.scroll, this.height, y);
    const track = shown?.line.track ?? null;
    if (shown === null || track === null || y < shown.y + HEAD) return null;
    const pixel = (scene.seen.to - scene.seen.from) / Math.max(1, this.width);
    const time = scene.seen.from + x * pixel;
    const level = scene.tiles.levelOf(pixel / this.ratio);
    const tile = scene.tiles.find(track.id, level, scene.tiles.indices(level, time, time)[0]);
    if (tile === null) return null;
    if (track.kind === "counter") {
      const next = tile.time.findIndex((known) => known > time);
      const place = (next < 0 ? tile.time.length : next) - 1;
      if (place < 0) return null;
      const [begin, value] = [tile.time[place] ?? 0, tile.value[place] ?? 0];
      return { track: track.id, info: track, depth: 0, name: track.name, category: "counter", begin, end: tile.time[place + 1] ?? begin, span: -1, count: 1, value };
    }
    const depth = Math.floor((y - shown.y - HEAD) / ROW);
    if (depth >= shown.line.lanes) return null;
    const last = tile.lanes[depth + 1] ?? 0;
    for (let place = firstEnding(tile.end, tile.lanes[depth] ?? 0, last, time - pixel); place < last; place++) {
      const [begin, end] = [tile.begin[place] ?? 0, tile.end[place] ?? 0];
      if (begin > time + pixel) return null;
      if (time > Math.max(end, begin + pixel)) continue;
      const look = tile.looks.list[tile.look[place] ?? 0];
      const [count, span] = [tile.count[place] ?? 1, tile.span[place] ?? NO_SPAN];
      return { track: track.id, info: track, depth, name: look?.name ?? "", category: scene.info.categories[look?.category ?? 0] ?? "", begin, end, span: count > 1 || span === NO_SPAN ? -1 : span, count, value: null };
    }
    return null;
  }
}

/** The first of `from..to` that ends at a time or later. */
function firstEnding(end: Float64Array, from: number, to: number, time: number): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((end[middle] ?? 0) < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The colours of an answer's looks, made again when the light or the search changes. */
export function coloursOf(looks: Looks, scene: Scene): Uint32Array {
  const { names } = scene;
  const key = `${scene.dark ? 1 : 0}${names === null ? "" : `${names.size} ${scene.search}`}`;
  if (looks.colours?.key !== key) {
    const values = Uint32Array.from(looks.list, (look) => spanColour(look.name, scene.info.categories[look.category] ?? "", scene.dark, names !== null && !names.has(look.name)));
    looks.colours = { key, values };
  }
  return looks.colours.values;
}
