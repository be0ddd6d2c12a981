// Moves a timeline: what is seen, when it is painted, which tiles are wanted. It paints once per frame at most and touches nothing else of the page, so that
// moving stays smooth however much is around it. Each frame is a measure "timeline frame", for whoever wants to know.

import { prefersDark } from "../base/colour";
import type { TimelineInfo } from "../data/api";
import { Tiles, type Place } from "../data/tiles";
import { Painter, type Found, type Mark, type Range, type Scene } from "./timeline_canvas";
import { HEAD, ROW, RULER, seenLines, type Layout } from "./timeline_layout";

const SETTLED_AFTER = 200;
/** Measures that are kept. */
const MEASURED = 4000;
/** With so few tracks all are asked for, seen or not. */
const FEW_TRACKS = 40;

/** What the page decides; the rest the stage knows itself. */
export type Chosen = Pick<Scene, "notes" | "selected" | "mark" | "arrows" | "search" | "names">;

/** A lane of a track. */
export type Row = Pick<Mark, "track" | "depth">;

/** What is told each frame what is seen. */
export interface Follower {
  follow: (scene: Scene) => void;
  close: () => void;
}

export class Stage {
  readonly painter: Painter;
  private readonly tiles: Tiles;
  private chosen: Chosen = { notes: [], selected: null, mark: null, arrows: [], search: "", names: null };
  /** Where the pointer is, as a share of the width: keys zoom there. */
  pointer: number | null = null;
  /** The strip of everything, or the other timelines that are seen together with this one. */
  follower: Follower | null = null;
  /** What the ruler counts from. */
  origin = 0;
  /** How far one can move, where that is not the trace itself. */
  bounds: Range | null = null;
  private asked = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private measured = 0;
  private readonly dark = matchMedia("(prefers-color-scheme: dark)");
  private readonly observer: ResizeObserver;
  private scroll = 0;
  /** What was brought into sight: it stays there while the size changes, until somebody scrolls. */
  private kept: Row | null = null;
  private keptAt = -1;
  seen: Range;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly scroller: HTMLElement,
    private readonly info: TimelineInfo,
    run: number,
    private layout: Layout,
    seen: Range,
    /** Called when moving has ended. */
    private readonly settled: (seen: Range, scroll: number) => void,
    private readonly told: (problem: string | null) => void,
  ) {
    this.painter = new Painter(canvas);
    this.tiles = new Tiles(run, info, () => this.ask());
    this.seen = this.clamp(seen);
    this.observer = new ResizeObserver(() => {
      this.painter.measure();
      if (this.kept !== null) this.reach(this.kept);
      this.ask();
    });
    this.observer.observe(canvas);
    this.dark.addEventListener("change", this.ask);
    scroller.addEventListener("scroll", this.scrolled, { passive: true });
    this.painter.measure();
    this.ask();
  }

  close(): void {
    this.observer.disconnect();
    this.dark.removeEventListener("change", this.ask);
    this.scroller.removeEventListener("scroll", this.scrolled);
    cancelAnimationFrame(this.asked);
    clearTimeout(this.timer);
  }

  get scene(): Scene {
    return { info: this.info, tiles: this.tiles, layout: this.layout, seen: this.seen, scroll: this.scroll, origin: this.origin, dark: prefersDark(), ...this.chosen };
  }

  arrange(layout: Layout): void {
    this.layout = layout;
    this.ask();
  }

  choose(chosen: Chosen): void {
    this.chosen = chosen;
    this.ask();
  }

  /** Paints with the next frame, once however often it is asked. */
  readonly ask = (): void => {
    if (this.asked === 0) this.asked = requestAnimationFrame(this.frame);
  };

  private readonly scrolled = (): void => {
    this.scroll = this.scroller.scrollTop;
    if (Math.abs(this.scroll - this.keptAt) > 1) this.kept = null;
    this.ask();
    this.settle();
  };

  private settle(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.settled(this.seen, this.scroll), SETTLED_AFTER);
  }

  private readonly frame = (): void => {
    this.asked = 0;
    const start = performance.now();
    const { scene } = this;
    this.request();
    const rectangles = this.painter.paint(scene);
    this.follower?.follow(scene);
    this.measured += 1;
    if (this.measured % MEASURED === 0) performance.clearMeasures("timeline frame");
    performance.measure("timeline frame", { start, end: performance.now(), detail: { rectangles } });
  };

  /** What is seen comes first, then the coarsest as a stand-in for all, then the neighbours. */
  private request(): void {
    const { tiles, info } = this;
    const level = tiles.levelOf((this.seen.to - this.seen.from) / Math.max(1, this.canvas.width));
    const [first, last] = tiles.covering(level, this.seen.from, this.seen.to);
    const [wholeFirst, wholeLast] = tiles.indices(tiles.coarsest, info.begin, info.end);
    const places: Place[] = [];
    for (let index = wholeFirst; index <= wholeLast; index++) places.push({ level: tiles.coarsest, index });
    for (let index = first; index <= last; index++) places.push({ level, index });
    const visible = places.length;
    const [left, right] = tiles.indices(level, info.begin, info.end);
    for (const index of [last + 1, first - 1]) if (index >= left && index <= right) places.push({ level, index });
    if (level < tiles.coarsest) places.push({ level: level + 1, index: Math.floor((first + last) / 4) });
    const shown = info.tracks.length <= FEW_TRACKS ? info.tracks : seenLines(this.layout, this.scroll, this.painter.height).map(({ line }) => line.track);
    const known = shown.filter((track) => track !== null);
    tiles.want(
      places,
      known.map((track) => track.id),
    );
    // Idle time comes when it comes.
    const tracks = known.filter((track) => track.kind !== "idle").map((track) => track.id);
    const ready = places.slice(0, visible).every((place) => tracks.every((track) => tiles.find(track, place.level, place.index) !== null));
    const state = ready ? "ready" : "loading";
    if (this.canvas.dataset["state"] !== state) this.canvas.dataset["state"] = state;
    this.told(tiles.problem);
  }

  private clamp(range: Range): Range {
    const { from: begin, to: end } = this.bounds ?? { from: this.info.begin, to: this.info.end };
    const whole = Math.max(1, end - begin);
    const length = Math.min(whole * 1.05, Math.max(20, range.to - range.from));
    const from = Math.min(Math.max(range.from, begin - whole * 0.025), end + whole * 0.025 - length);
    return { from, to: from + length };
  }

  /** Shows a range. */
  show(range: Range): void {
    this.seen = this.clamp(range);
    this.ask();
    this.settle();
  }

  /** Zooms around a share of the width: where the pointer is, or the middle. */
  zoom(factor: number, centre = this.pointer ?? 0.5): void {
    const { from, to } = this.seen;
    const point = from + (to - from) * centre;
    this.show({ from: point - (point - from) * factor, to: point + (to - point) * factor });
  }

  /** Moves by a share of what is seen. */
  move(share: number): void {
    const { from, to } = this.seen;
    this.show({ from: from + (to - from) * share, to: to + (to - from) * share });
  }

  /** The first of some tracks that can be seen, or the first of all. */
  firstTrack(tracks: readonly number[]): number | undefined {
    const seen = seenLines(this.layout, this.scroll, this.painter.height).flatMap(({ line, y }) => (line.track !== null && y + HEAD + ROW > RULER + this.layout.pinnedHeight ? [line.track.id] : []));
    return seen.find((track) => tracks.includes(track)) ?? tracks[0];
  }

  /** Scrolls up and down. */
  climb(pixels: number): void {
    this.scroller.scrollTop += pixels;
  }

  /** Scrolls to a place from the top. */
  scrollTo(top: number): void {
    this.kept = null;
    this.scroller.scrollTop = top;
  }

  /** Keeps a row where it is seen, whatever the size becomes. */
  keep(row: Row): void {
    this.kept = row;
    this.keptAt = this.scroll;
  }

  /** Brings a row into sight; where a track is folded, all of it is one row. Says whether it is drawn at all. */
  reach(row: Row): boolean {
    const line = this.layout.lines.find((known) => known.track?.id === row.track);
    if (line === undefined) return this.layout.pinned.some((known) => known.track?.id === row.track);
    const room = Math.max(ROW, this.painter.height - RULER - this.layout.pinnedHeight);
    const top = line.top + HEAD + Math.min(row.depth, Math.max(0, line.lanes - 1)) * ROW;
    const scroll = this.scroller.scrollTop;
    // The title of the track is seen, too, where there is room for both.
    const title = top + ROW - line.top <= room ? line.top : top;
    if (title < scroll || top + ROW > scroll + room) this.scroller.scrollTop = Math.max(0, Math.min(title, top - room / 3));
    this.kept = row;
    this.keptAt = this.scroller.scrollTop;
    return true;
  }

  time(x: number): number {
    return this.seen.from + (x / Math.max(1, this.painter.width)) * (this.seen.to - this.seen.from);
  }

  at(x: number, y: number): Found | null {
    return this.painter.at(this.scene, x, y);
  }
}
