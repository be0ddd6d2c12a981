// Where things are drawn: calls of flame graphs, tracks of the timeline, tiles of its axis, colours.

import "./page";
import assert from "node:assert/strict";
import { test } from "node:test";
import { namedPart, packed, spanColour } from "../src/base/colour";
import { csv } from "../src/base/csv";
import { flameLayout } from "../src/base/flame_layout";
import type { TimelineInfo, TrackInfo } from "../src/data/api";
import { Tiles } from "../src/data/tiles";
import { arrange, HEAD, lineAt, ROW, rowOf, RULER, seenLines } from "../src/widgets/timeline_layout";
import { arrowEnds, strokeOf } from "../src/widgets/timeline_marks";

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

test("a row is where its lane is drawn, in sight or not", () => {
  const open = arrange(TRACKS, NOTHING);
  const [first] = seenLines(open, 0, 400).filter(({ line }) => line.track?.id === 1);
  assert.equal(rowOf(open, 0, { track: 1, depth: 2 }), (first?.y ?? 0) + HEAD + 2 * ROW);
  assert.equal(rowOf(open, 500, { track: 1, depth: 2 }), (first?.y ?? 0) + HEAD + 2 * ROW - 500);
  const folded = arrange(TRACKS, { ...NOTHING, folded: new Set([1]) });
  assert.equal(rowOf(folded, 0, { track: 1, depth: 2 }), rowOf(folded, 0, { track: 1, depth: 0 }));
  const closed = arrange(TRACKS, { ...NOTHING, closed: new Set(["b"]) });
  assert.equal(rowOf(closed, 0, { track: 3, depth: 0 }), RULER + (closed.lines.find((line) => line.group === "b")?.top ?? 0));
  assert.equal(rowOf(arrange(TRACKS, { ...NOTHING, pinned: [2] }), 500, { track: 2, depth: 0 }), RULER + HEAD);
  assert.equal(rowOf(open, 0, { track: 9, depth: 0 }), null);
});

test("an arrow leaves one span and arrives at the other, above or below what is seen", () => {
  const layout = arrange(TRACKS, NOTHING);
  const arrow = { from: { track: 1, depth: 1, begin: 100, end: 120 }, to: { track: 2, depth: 0, begin: 150, end: 190 } };
  const ends = arrowEnds(layout, 0, arrow, (time) => time * 2);
  assert.deepEqual(ends, { left: 200, top: (rowOf(layout, 0, arrow.from) ?? 0) + ROW / 2, right: 300, bottom: (rowOf(layout, 0, arrow.to) ?? 0) + ROW / 2 });
  const above = arrowEnds(layout, 1000, arrow, (time) => time * 2);
  assert.ok((above?.top ?? 0) < 0 && (above?.bottom ?? 0) < 0);
  assert.ok(Math.abs(arrowEnds(layout, 0, arrow, () => 1e12)?.left ?? 0) < 1e5);
});

test("many arrows are thinner than few", () => {
  assert.ok(strokeOf(50).width < strokeOf(8).width && strokeOf(8).width < strokeOf(1).width);
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
