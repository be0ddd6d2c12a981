// Where things are drawn: calls of flame graphs, tracks of the timeline, tiles of its axis, colours.

import "./page";
import assert from "node:assert/strict";
import { test } from "node:test";
import { namedPart, packed, spanColour } from "../src/base/colour";
import { fitting } from "../src/base/commands";
import { csv } from "../src/base/csv";
import { flameColour, flameLegend } from "../src/base/flame_colour";
import { flameLayout } from "../src/base/flame_layout";
import type { TimelineInfo, TrackInfo } from "../src/data/api";
import { Tiles } from "../src/data/tiles";
import { fitted } from "../src/widgets/canvas";
import { arrange, HEAD, lineAt, ROW, rowOf, RULER, seenLines, tracksBetween } from "../src/widgets/timeline_layout";
import { arrowEnds, strokeOf } from "../src/widgets/timeline_marks";
import { busiestLane, windowOf } from "../src/widgets/timeline_minimap";
import { fitting as beside } from "../src/widgets/tooltip";

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

test("a label has the letters that fit into its box", () => {
  for (let width = 10; width < 200; width += 7) assert.ok(fitted("a name that is long enough for all of these", width, 6.6).length * 6.6 <= width);
  assert.equal(fitted("name", 200, 6.6), "name");
});

test("an area has the tracks that a drag went over", () => {
  const layout = arrange(TRACKS, NOTHING);
  const top = (track: number) => rowOf(layout, 0, { track, depth: 0 }) ?? 0;
  assert.deepEqual(tracksBetween(layout, 0, 400, top(1) + 5, top(2) + 5), [1, 2]);
  assert.deepEqual(tracksBetween(layout, 0, 400, top(2) + 9, top(2) + 2), [2]);
  const closed = arrange(TRACKS, { ...NOTHING, closed: new Set(["a"]) });
  assert.deepEqual(tracksBetween(closed, 0, 400, RULER + 5, RULER + 8), [1, 2]);
});

test("the window of the minimap is where the seen part is, and never too narrow to hold", () => {
  const whole = { from: 1000, to: 2000 };
  assert.deepEqual(windowOf({ from: 1250, to: 1500 }, whole, 800), { left: 200, width: 200 });
  assert.deepEqual(windowOf({ from: 1999, to: 1999.1 }, whole, 800), { left: 796, width: 4 });
  assert.deepEqual(windowOf({ from: 900, to: 2100 }, whole, 800), { left: 0, width: 800 });
  assert.equal(busiestLane(new Uint32Array([0, 1, 9, 12])), 1);
});

test("commands are found by their words in any order", () => {
  const commands = ["Zoom in", "Zoom out", "Track GPU 0, stream 7", "Step 7"].map((title) => ({ title, run: () => undefined }));
  const titles = (text: string) => fitting(commands, text).map((command) => command.title);
  assert.deepEqual(titles("step 7"), ["Step 7"]);
  assert.deepEqual(titles("7"), ["Track GPU 0, stream 7", "Step 7"]);
  assert.deepEqual(titles("stream gpu"), ["Track GPU 0, stream 7"]);
  assert.equal(titles("").length, 4);
});

test("a tooltip is within the window, beside the pointer", () => {
  const [size, room] = [
    { width: 200, height: 60 },
    { width: 800, height: 600 },
  ];
  assert.deepEqual(beside(100, 100, size, room), { left: 114, top: 114 });
  for (const [x, y] of [
    [790, 590],
    [0, 599],
    [799, 0],
    [400, 300],
  ] as const) {
    const { left, top } = beside(x, y, size, room);
    assert.ok(left >= 0 && left + size.width <= room.width && top >= 0 && top + size.height <= room.height);
    assert.ok(x < left || x > left + size.width || y < top || y > top + size.height);
  }
});

test("calls of one library have one colour, and yours stand out", () => {
  const place = (name: string, origin: string, library: string, file: string) => ({ name, origin, library, file });
  const [one, two] = [place("linear", "library", "torch", "a.py"), place("relu", "library", "torch", "b.py")];
  const [mine, native] = [place("train", "yours", "", "train.py"), place("gemm", "native", "libcublas", "")];
  for (const dark of [false, true]) {
    assert.equal(flameColour(one, "library", dark), flameColour(two, "library", dark));
    assert.notEqual(flameColour(one, "file", dark), flameColour(two, "file", dark));
    assert.equal(new Set([one, mine, native].map((known) => flameColour(known, "code", dark))).size, 3);
    assert.deepEqual(
      flameLegend([one, two, mine, native], "library", dark).map(([title]) => title),
      ["Your code", "torch", "libcublas"],
    );
    assert.equal(flameLegend([one], "name", dark).length, 0);
  }
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
  // Six tenths of the DataLoader's #d93b6f on white, whatever the span is called.
  assert.equal(spanColour("DataLoader: next", "idle data_loader", false, false), 0xffa989e8);
  assert.equal(spanColour("x", "idle data_loader", false, false), spanColour("y", "idle data_loader", false, false));
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
