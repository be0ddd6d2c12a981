// What the bytes of a tile say. They are described in crates/hotspan-view/src/timeline/tile.rs.

import type { Look, TileHead } from "./api";

/** What all tracks of an answer share. Who draws keeps colours of looks here. */
export interface Looks {
  list: readonly Look[];
  colours: { key: string; values: Uint32Array } | null;
}

/** A track of a tile: columns of rectangles, lane after lane; or the values of a counter. */
export interface TrackTile {
  looks: Looks;
  /** Where each lane begins, and where the last ends. */
  lanes: Uint32Array;
  begin: Float64Array;
  end: Float64Array;
  span: Uint32Array;
  look: Uint32Array;
  count: Uint32Array;
  time: Float64Array;
  value: Float64Array;
}

/** The number of no span. */
export const NO_SPAN = 0xffffffff;

/** The tracks of an answer. */
export function decode(buffer: ArrayBuffer): Map<number, TrackTile> {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length))) as TileHead;
  const rectangles = head.tracks.reduce((sum, track) => sum + track.lanes.reduce((lanes, count) => lanes + count, 0), 0);
  const values = head.counters.reduce((sum, counter) => sum + counter.count, 0);
  let offset = 8 + length;
  const wide = (count: number) => {
    const column = new Float64Array(buffer, offset, count);
    offset += count * 8;
    return column;
  };
  const narrow = (count: number) => {
    const column = new Uint32Array(buffer, offset, count);
    offset += count * 4;
    return column;
  };
  const [begin, end, time, value] = [wide(rectangles), wide(rectangles), wide(values), wide(values)];
  const [span, look, count] = [narrow(rectangles), narrow(rectangles), narrow(rectangles)];
  const looks: Looks = { list: head.looks, colours: null };
  const result = new Map<number, TrackTile>();
  let first = 0;
  for (const track of head.tracks) {
    const lanes = new Uint32Array(track.lanes.length + 1);
    for (const [lane, rows] of track.lanes.entries()) lanes[lane + 1] = (lanes[lane] ?? 0) + rows;
    const last = first + (lanes[track.lanes.length] ?? 0);
    const cut = <T extends Float64Array | Uint32Array>(column: T) => column.subarray(first, last) as T;
    result.set(track.id, { looks, lanes, begin: cut(begin), end: cut(end), span: cut(span), look: cut(look), count: cut(count), time: time.subarray(0, 0), value: value.subarray(0, 0) });
    first = last;
  }
  first = 0;
  for (const counter of head.counters) {
    const last = first + counter.count;
    const none = { begin: begin.subarray(0, 0), end: end.subarray(0, 0), span: span.subarray(0, 0), look: look.subarray(0, 0), count: count.subarray(0, 0) };
    result.set(counter.id, { looks, lanes: new Uint32Array(1), ...none, time: time.subarray(first, last), value: value.subarray(first, last) });
    first = last;
  }
  return result;
}

/** Bytes that are written as text. */
export function decodeText(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
