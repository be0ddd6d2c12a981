// Tiles of the timeline: asked for once and kept. While one is on its way, the nearest coarser one stands in for it.

import type { Picture, TimelineInfo } from "./api";
import { ask, askBytes, isStatic } from "./server";
import { decode, decodeText, type TrackTile } from "./tile_bytes";

/** A piece of an axis that a tile covers. */
export interface Place {
  level: number;
  index: number;
}

const AT_ONCE = 3;
/** Rectangles that are kept: some 100 MB. */
const MOST_KEPT = 4_000_000;
const AGAIN_AFTER = 1000;

export class Tiles {
  private readonly kept = new Map<string, Map<number, TrackTile>>();
  private readonly coming = new Set<string>();
  private rectangles = 0;
  private picture: Map<number, TrackTile> | null = null;
  /** The level at which one tile or two hold everything. */
  readonly coarsest: number;
  /** What went wrong last; cleared by the next answer. */
  problem: string | null = null;
  private failedAt = -Infinity;
  /** Tracks that are asked for by themselves. */
  private readonly slow: ReadonlySet<number>;

  constructor(
    private readonly run: number,
    private readonly info: TimelineInfo,
    /** Called when something new can be drawn. */
    private readonly arrived: () => void,
  ) {
    this.coarsest = Math.max(0, Math.ceil(Math.log2(Math.max(1, info.end - info.begin))) - info.columns);
    this.slow = new Set(info.tracks.filter((track) => track.kind === "idle").map((track) => track.id));
    if (isStatic) {
      void ask<Picture>(`run/${run}/picture`).then((picture) => {
        this.picture = decode(decodeText(picture.data).buffer);
        arrived();
      });
    }
  }

  /** The level whose columns are at most a pixel of so many nanoseconds. */
  levelOf(pixel: number): number {
    return Math.min(this.coarsest, Math.max(0, Math.floor(Math.log2(Math.max(1, pixel)))));
  }

  /** How much time a tile holds. */
  width(level: number): number {
    return 2 ** (level + this.info.columns);
  }

  indices(level: number, from: number, to: number): [first: number, last: number] {
    return [Math.floor(from / this.width(level)), Math.floor(to / this.width(level))];
  }

  /** The tiles of a stretch of time in which the trace has something. */
  covering(level: number, from: number, to: number): [first: number, last: number] {
    return this.indices(level, Math.max(from, this.info.begin), Math.min(to, this.info.end));
  }

  /** The tile, or a coarser one that stands in for it. */
  find(track: number, level: number, index: number): TrackTile | null {
    if (this.picture !== null) return this.picture.get(track) ?? null;
    for (let [at, place] = [level, index]; at <= this.coarsest; at++, place = Math.floor(place / 2)) {
      const tile = this.kept.get(`${at}/${place}`)?.get(track);
      if (tile !== undefined) return tile;
    }
    return null;
  }

  /** Whether the tile itself is here for all these tracks. */
  private missing(place: Place, tracks: readonly number[]): number[] {
    const key = `${place.level}/${place.index}`;
    const known = this.kept.get(key);
    if (known !== undefined) {
      // The last used are the last to go.
      this.kept.delete(key);
      this.kept.set(key, known);
    }
    return tracks.filter((track) => known?.has(track) !== true);
  }

  /** Asks for tiles that are not here, the first ones first; the rest is asked for when it is still wanted later. Says whether all are here. */
  want(places: readonly Place[], tracks: readonly number[]): boolean {
    if (isStatic) return this.picture !== null;
    let complete = true;
    for (const place of places) {
      const missing = this.missing(place, tracks);
      if (missing.length === 0) continue;
      complete = false;
      if (this.coming.size >= AT_ONCE || performance.now() - this.failedAt < AGAIN_AFTER) break;
      // Idle time takes the server longer to find than all else has to wait.
      const slow = (track: number) => this.slow.has(track);
      for (const [group, name] of [
        [missing.filter((track) => !slow(track)), ""],
        [missing.filter(slow), " idle"],
      ] as const) {
        const key = `${place.level}/${place.index}${name}`;
        if (group.length > 0 && !this.coming.has(key)) void this.fetch(key, place, group);
      }
    }
    return complete;
  }

  private async fetch(name: string, place: Place, tracks: readonly number[]): Promise<void> {
    const key = `${place.level}/${place.index}`;
    this.coming.add(name);
    try {
      const bytes = await askBytes(`run/${this.run}/tile?level=${place.level}&index=${place.index}&tracks=${tracks.join(",")}`);
      this.keep(key, decode(bytes));
      this.problem = null;
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      this.failedAt = performance.now();
      setTimeout(this.arrived, AGAIN_AFTER);
    } finally {
      this.coming.delete(name);
      this.arrived();
    }
  }

  private keep(key: string, tracks: Map<number, TrackTile>): void {
    const known = this.kept.get(key) ?? new Map<number, TrackTile>();
    for (const [track, tile] of tracks) {
      this.rectangles += tile.begin.length + tile.time.length - (known.get(track)?.begin.length ?? 0);
      known.set(track, tile);
    }
    this.kept.set(key, known);
    for (const [old, tile] of this.kept) {
      if (this.rectangles <= MOST_KEPT || old === key) break;
      // What stands in for everything else stays.
      if (old.startsWith(`${this.coarsest}/`)) continue;
      for (const track of tile.values()) this.rectangles -= track.begin.length + track.time.length;
      this.kept.delete(old);
    }
  }
}
