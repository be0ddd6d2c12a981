// Where the tracks of a timeline are: pinned ones first, then groups of tracks, any of them folded. Heights only; time is not known here.

import type { TrackInfo } from "../data/api";

export const ROW = 17;
export const HEAD = 18;
export const RULER = 34;
const COUNTER = 40;
const FOLDED_COUNTER = 12;
const GAP = 4;
/** Tracks with more lanes than this begin folded: deeper than the stacks of a training, as of a recursion. */
const DEEP = 120;

export interface Line {
  /** A group's title has no track. */
  track: TrackInfo | null;
  group: string;
  top: number;
  height: number;
  /** Lanes that are drawn. */
  lanes: number;
  folded: boolean;
  pinned: boolean;
  /** The tracks of a group, at its title. */
  members: readonly number[];
}

export interface Layout {
  /** These stay on top. */
  pinned: readonly Line[];
  pinnedHeight: number;
  /** These scroll below; their tops count from the end of the pinned ones. */
  lines: readonly Line[];
  height: number;
}

/** What the user folded and pinned. */
export interface Arrangement {
  folded: ReadonlySet<number>;
  closed: ReadonlySet<string>;
  pinned: readonly number[];
}

export function foldedAtFirst(tracks: readonly TrackInfo[]): Set<number> {
  return new Set(tracks.filter((track) => track.depth > DEEP).map((track) => track.id));
}

function line(track: TrackInfo, top: number, arrangement: Arrangement, pinned: boolean): Line {
  const folded = arrangement.folded.has(track.id);
  const lanes = folded ? Math.min(1, track.depth) : track.depth;
  const body = track.kind === "counter" ? (folded ? FOLDED_COUNTER : COUNTER) : lanes * ROW;
  return { track, group: track.process, top, height: HEAD + body + GAP, lanes, folded, pinned, members: [] };
}

export function arrange(tracks: readonly TrackInfo[], arrangement: Arrangement): Layout {
  const pinned: Line[] = [];
  let top = 0;
  for (const id of arrangement.pinned) {
    const track = tracks.find((known) => known.id === id);
    if (track === undefined) continue;
    pinned.push(line(track, top, arrangement, true));
    top += pinned[pinned.length - 1]?.height ?? 0;
  }
  const pinnedHeight = top;
  const lines: Line[] = [];
  const groups = new Map<string, TrackInfo[]>();
  for (const track of tracks) {
    const group = groups.get(track.process);
    if (group === undefined) groups.set(track.process, [track]);
    else group.push(track);
  }
  top = 0;
  for (const [group, members] of groups) {
    const closed = arrangement.closed.has(group);
    lines.push({ track: null, group, top, height: HEAD + 2, lanes: 0, folded: closed, pinned: false, members: members.map((track) => track.id) });
    top += HEAD + 2;
    if (closed) continue;
    for (const track of members) {
      if (arrangement.pinned.includes(track.id)) continue;
      const next = line(track, top, arrangement, false);
      lines.push(next);
      top += next.height;
    }
  }
  return { pinned, pinnedHeight, lines, height: RULER + pinnedHeight + top };
}

/** A line with the height at which it is on the screen now. */
export interface Shown {
  line: Line;
  y: number;
}

/** The lines that can be seen, pinned ones last so that they are drawn over the others. */
export function seenLines(layout: Layout, scroll: number, height: number): Shown[] {
  const first = RULER + layout.pinnedHeight;
  const shown: Shown[] = [];
  for (const known of layout.lines) {
    const y = first + known.top - scroll;
    if (y + known.height > first && y < height) shown.push({ line: known, y });
  }
  for (const known of layout.pinned) shown.push({ line: known, y: RULER + known.top });
  return shown;
}

/** The line at a height of the screen. */
export function lineAt(layout: Layout, scroll: number, height: number, y: number): Shown | null {
  const hit = ({ line: known, y: top }: Shown) => y >= top && y < top + known.height;
  return y < RULER ? null : (seenLines(layout, scroll, height).findLast(hit) ?? null);
}

/** The tracks that are drawn between two heights of the screen. */
export function tracksBetween(layout: Layout, scroll: number, height: number, from: number, to: number): number[] {
  const [top, bottom] = [Math.min(from, to), Math.max(from, to)];
  const touched = seenLines(layout, scroll, height).filter(({ line: known, y }) => y < bottom && y + known.height > top);
  return [...new Set(touched.flatMap(({ line: known }) => (known.track === null ? (known.folded ? known.members : []) : [known.track.id])))];
}

/** Where a lane of a track is on the screen, in sight or not; a folded track has all in its first lane, a closed group in its title. */
export function rowOf(layout: Layout, scroll: number, row: { track: number; depth: number }): number | null {
  const pinned = layout.pinned.find((known) => known.track?.id === row.track);
  const found = pinned ?? layout.lines.find((known) => known.track?.id === row.track) ?? layout.lines.find((known) => known.folded && known.members.includes(row.track));
  if (found === undefined) return null;
  const top = found.pinned ? RULER + found.top : RULER + layout.pinnedHeight + found.top - scroll;
  return found.track === null ? top : top + HEAD + Math.min(row.depth, Math.max(0, found.lanes - 1)) * ROW;
}
