// The minimap: all of the recording in a strip, and in it a window of what is seen. Dragging moves the window.

import { packed } from "../base/colour";
import type { TimelineInfo } from "../data/api";
import type { TrackTile } from "../data/tile_bytes";
import type { Tiles } from "../data/tiles";
import { coloursOf, type Range, type Scene } from "./timeline_canvas";

/** Rows that are drawn at most. */
const MOST_ROWS = 14;
/** A window is at least this wide, so that it can be seen and held. */
const NARROWEST = 4;

/** The lane that shows most: the outermost call of a thread covers everything. */
export function busiestLane(lanes: Uint32Array): number {
  let [best, most] = [0, -1];
  for (let lane = 0; lane + 1 < lanes.length; lane++) {
    const count = (lanes[lane + 1] ?? 0) - (lanes[lane] ?? 0);
    if (count > most) [best, most] = [lane, count];
  }
  return best;
}

/** Where the window is in a strip of so many pixels. */
export function windowOf(seen: Range, whole: Range, width: number): { left: number; width: number } {
  const length = Math.max(1, whole.to - whole.from);
  const wide = Math.min(width, Math.max(NARROWEST, ((seen.to - seen.from) / length) * width));
  const left = ((seen.from - whole.from) / length) * width;
  return { left: Math.max(0, Math.min(width - wide, left)), width: wide };
}

export class Minimap {
  private painted = "";
  /** The strip without its window. */
  private readonly strip = document.createElement("canvas");
  private held: { x: number; from: number } | null = null;
  private readonly whole: Range;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly info: TimelineInfo,
    private readonly show: (seen: Range) => void,
  ) {
    this.whole = { from: info.begin, to: info.end };
    for (const [name, listener] of this.listeners) canvas.parentElement?.addEventListener(name, listener);
  }

  close(): void {
    for (const [name, listener] of this.listeners) this.canvas.parentElement?.removeEventListener(name, listener);
  }

  private seen: Range = { from: 0, to: 1 };

  private readonly down = (event: Event): void => {
    if (!(event instanceof PointerEvent) || event.button !== 0) return;
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const { left, width } = windowOf(this.seen, this.whole, box.width);
    // Beside the window: it comes here first.
    if (x < left || x > left + width) this.centre(x, box.width);
    this.held = { x, from: this.seen.from };
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
  };

  private readonly moved = (event: Event): void => {
    if (!(event instanceof PointerEvent) || this.held === null) return;
    const box = this.canvas.getBoundingClientRect();
    const shift = ((event.clientX - box.left - this.held.x) / Math.max(1, box.width)) * (this.whole.to - this.whole.from);
    const length = this.seen.to - this.seen.from;
    this.seen = { from: this.held.from + shift, to: this.held.from + shift + length };
    this.show(this.seen);
  };

  private readonly up = (): void => {
    this.held = null;
  };

  private readonly listeners: readonly [string, (event: Event) => void][] = [
    ["pointerdown", this.down],
    ["pointermove", this.moved],
    ["pointerup", this.up],
    ["pointercancel", this.up],
  ];

  private centre(x: number, width: number): void {
    const middle = this.whole.from + (x / Math.max(1, width)) * (this.whole.to - this.whole.from);
    const half = (this.seen.to - this.seen.from) / 2;
    this.seen = { from: middle - half, to: middle + half };
    this.show(this.seen);
  }

  /** Draws the window over the strip, which is painted anew only when there is something new in it. All is drawn in one canvas: elements that move
   * over each other would cost more than the timeline itself. */
  follow(scene: Scene): void {
    this.seen = scene.seen;
    const width = this.canvas.clientWidth;
    const tiles = this.tiles(scene.tiles);
    const key = `${width} ${scene.dark} ${scene.search} ${scene.names?.size ?? 0} ${tiles.map(({ parts }) => parts.length).join(" ")}`;
    const context = this.canvas.getContext("2d", { alpha: false });
    if (context === null) return;
    if (key !== this.painted) {
      this.painted = key;
      this.paint(scene, tiles);
    }
    const ratio = this.canvas.width / Math.max(1, width);
    const { left, width: wide } = windowOf(scene.seen, this.whole, width);
    const [from, to, high] = [Math.round(left * ratio), Math.round((left + wide) * ratio), this.canvas.height];
    context.drawImage(this.strip, 0, 0);
    context.fillStyle = scene.dark ? "rgba(0,0,0,.5)" : "rgba(90,98,112,.33)";
    context.fillRect(0, 0, from, high);
    context.fillRect(to, 0, this.canvas.width - to, high);
    context.strokeStyle = scene.dark ? "#8ab4ff" : "#1a56c4";
    context.strokeRect(from + 0.5, 0.5, Math.max(1, to - from - 1), high - 1);
  }

  private tiles(tiles: Tiles): { parts: TrackTile[] }[] {
    const [first, last] = tiles.indices(tiles.coarsest, this.info.begin, this.info.end);
    const found: { parts: TrackTile[] }[] = [];
    for (const track of this.info.tracks) {
      if (found.length >= MOST_ROWS) break;
      if (track.kind === "counter") continue;
      const parts: TrackTile[] = [];
      for (let index = first; index <= last; index++) {
        const tile = tiles.find(track.id, tiles.coarsest, index);
        if (tile !== null && !parts.includes(tile)) parts.push(tile);
      }
      found.push({ parts });
    }
    return found;
  }

  private paint(scene: Scene, rows: readonly { parts: TrackTile[] }[]): void {
    const context = this.strip.getContext("2d");
    if (context === null) return;
    const ratio = devicePixelRatio;
    const [wide, high] = [Math.max(1, Math.round(this.canvas.clientWidth * ratio)), Math.max(1, Math.round(this.canvas.clientHeight * ratio))];
    for (const canvas of [this.canvas, this.strip]) [canvas.width, canvas.height] = [wide, high];
    const image = new ImageData(wide, high);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(packed(220, 0.12, scene.dark ? 0.13 : 0.97));
    const scale = wide / Math.max(1, this.whole.to - this.whole.from);
    rows.forEach(({ parts }, number) => {
      const [top, bottom] = [Math.round((number / rows.length) * high), Math.max(Math.round((number / rows.length) * high) + 1, Math.round(((number + 1) / rows.length) * high) - 1)];
      for (const tile of parts) {
        const colours = coloursOf(tile.looks, scene);
        const lane = busiestLane(tile.lanes);
        for (let place = tile.lanes[lane] ?? 0; place < (tile.lanes[lane + 1] ?? 0); place++) {
          const left = Math.max(0, Math.floor(((tile.begin[place] ?? 0) - this.whole.from) * scale));
          const right = Math.min(wide, Math.max(left + 1, Math.floor(((tile.end[place] ?? 0) - this.whole.from) * scale)));
          const colour = colours[tile.look[place] ?? 0] ?? 0;
          for (let row = top; row < bottom && row < high; row++) pixels.fill(colour, row * wide + left, row * wide + right);
        }
      }
    });
    context.putImageData(image, 0, 0);
  }
}
