// Where things are drawn: calls of flame graphs, tracks of the timeline, tiles of its axis, colours.

import "./page";
import assert from "node:assert/strict";
import { test } from "node:test";
import { namedPart, packed, spanColour } from "../src/base/colour";
import { csv } from "../src/base/csv";
import { flameLayout } from "../src/base/flame_layout";
import type { TimelineInfo, TrackInfo } from "../src/data/api";
import { Tiles } from "../src/data/tiles";
import { arrange, HEAD, lineAt, RULER, seenLines } from "../src/widgets/timeline_layout";

const track = (id: number, process: string, depth: number, kind = "spans"): TrackInfo => ({ id, kind, process, name: `track ${id}`, device: false, depth, spans: 1, unit: "", least: 0, most: 0 });
const TRACKS = [track(1, "a", 3), track(2, "a", 1), track(3, "b", 2, "counter")];
const NOTHING = { folded: new Set<number>(), closed: new Set<string>(), pinned: [] };

test("calls of a flame graph stand within their callers, side by side", () => {
  const layout = flameLayout([-1, 0, 0, 2, -1], [100, 30, 50, 20, 40]);
  assert.deepEqual([...layout.left], [0, 0, 30, 30, 100]);
  assert.deepEqual([...layout.depth], [0, 1, 1, 2, 0]);
  assert.equal(layout.deepest, 2);
  assert.equal(layout.total, 140);
});

test("in order of time they stand where they began", () => {
  const layout = flameLayout([-1, 0, -1], [10, 4, 5], [1000, 1002, 1020]);
  assert.deepEqual([...layout.left], [0, 2, 20]);
  assert.equal(layout.total, 25);
});

test("tracks lie below each other without gaps or overlap", () => {
  for (const arrangement of [NOTHING, { ...NOTHING, folded: new Set([1]) }, { ...NOTHING, pinned: [2] }, { ...NOTHING, closed: new Set(["a"]) }]) {
    const layout = arrange(TRACKS, arrangement);
    for (const lines of [layout.pinned, layout.lines]) {
      let top = 0;
      for (const line of lines) {
        assert.equal(line.top, top);
        top += line.height;
      }
    }
    const last = layout.lines[layout.lines.length - 1];
    assert.equal(layout.height, RULER + layout.pinnedHeight + (last?.top ?? 0) + (last?.height ?? 0));
  }
});

test("folding and closing take room away, pinning moves a track to the top", () => {
  const open = arrange(TRACKS, NOTHING);
  assert.ok(arrange(TRACKS, { ...NOTHING, folded: new Set([1]) }).height < open.height);
  assert.ok(arrange(TRACKS, { ...NOTHING, closed: new Set(["a"]) }).height < open.height);
  const pinned = arrange(TRACKS, { ...NOTHING, pinned: [2] });
  assert.deepEqual([pinned.pinned.map((line) => line.track?.id), pinned.height], [[2], open.height]);
});

test("every height that is seen belongs to the line that is drawn there", () => {
  const layout = arrange(TRACKS, { ...NOTHING, pinned: [2] });
  const [scroll, height] = [25, 300];
  for (const { line, y } of seenLines(layout, scroll, height)) {
    const middle = Math.max(y + HEAD / 2, RULER + (line.pinned ? 0 : layout.pinnedHeight) + 1);
    if (middle < y + line.height) assert.equal(lineAt(layout, scroll, height, middle)?.line, line);
  }
  assert.equal(lineAt(layout, scroll, height, RULER - 1), null);
});

test("tiles cover the axis: a pixel is never finer than its column, and the coarsest level holds all", () => {
  const info: TimelineInfo = { begin: 0, end: 5e9, columns: 10, tracks: [], steps: [], categories: [], hidden: 0, record: "" };
  const tiles = new Tiles(0, info, () => undefined);
  for (let pixel = 0.01; pixel < 1e8; pixel *= 3) {
    const level = tiles.levelOf(pixel);
    assert.ok(level >= 0 && level <= tiles.coarsest);
    if (pixel >= 1 && level < tiles.coarsest) assert.ok(2 ** level <= pixel && pixel < 2 ** (level + 1));
    const [first, last] = tiles.indices(level, 1e9, 2e9);
    assert.ok(first * tiles.width(level) <= 1e9 && (last + 1) * tiles.width(level) > 2e9);
  }
  const [first, last] = tiles.indices(tiles.coarsest, info.begin, info.end);
  assert.ok(last - first <= 1);
});

test("a name has one colour, and what is no work is grey", () => {
  assert.equal(packed(0, 1, 0.5), 0xff0000ff);
  assert.equal(packed(120, 1, 0.5), 0xff00ff00);
  assert.equal(packed(-120, 1, 0.5), packed(240, 1, 0.5));
  assert.equal(spanColour("aten::mm", "cpu_op", false, false), spanColour("aten::mm", "cpu_op", false, false));
  assert.notEqual(spanColour("aten::mm", "cpu_op", false, false), spanColour("aten::mm", "cpu_op", true, false));
  assert.equal(namedPart("Idle", 3), namedPart("idle", 5));
});

test("CSV quotes what would break a row", () => {
  assert.equal(
    csv(
      ["name", "n"],
      [
        ['a "b", c', 1],
        ["line\nbreak", null],
      ],
    ),
    'name,n\n"a ""b"", c",1\n"line\nbreak",\n',
  );
});
