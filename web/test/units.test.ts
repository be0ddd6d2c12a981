// Numbers with units say what they were made of, to three digits, in the unit that fits.

import assert from "node:assert/strict";
import { test } from "node:test";
import { duration, shown, size } from "../src/base/units";

const TIMES: Record<string, number> = { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 };
const SIZES: Record<string, number> = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/** The amount that a text means. */
function meant(text: string, units: Record<string, number>): number {
  const [, number, unit] = /^(-?[\d.]+) (\S+)$/.exec(text) ?? [];
  assert.ok(unit !== undefined && unit in units, text);
  return Number(number) * (units[unit] ?? Number.NaN);
}

test("a duration means the time it was made of", () => {
  for (let time = 1; time < 1e13; time = Math.ceil(time * 1.7)) {
    for (const signed of [time, -time]) assert.ok(Math.abs(meant(duration(signed), TIMES) - signed) <= time * 0.006, `${signed}: ${duration(signed)}`);
  }
});

test("a size means the bytes it was made of, in powers of two", () => {
  for (let bytes = 1; bytes < 1e15; bytes = Math.ceil(bytes * 1.9)) assert.ok(Math.abs(meant(size(bytes), SIZES) - bytes) <= bytes * 0.006, `${bytes}: ${size(bytes)}`);
  assert.match(size(1024), /^1(\.0+)? KiB$/);
});

test("the unit is the largest that leaves a whole number before the point", () => {
  const unit = (time: number) => duration(time).split(" ")[1];
  assert.deepEqual([1, 999, 1000, 999_000, 1e6, 1e9].map(unit), ["ns", "ns", "µs", "µs", "ms", "s"]);
  assert.match(duration(0), /^0 /);
});

test("cells are shown by the unit of their column", () => {
  assert.equal(shown(null, "ns"), "–");
  assert.equal(shown("aten::mm", "ns"), "aten::mm");
  assert.equal(shown(1500, "ns"), duration(1500));
  assert.equal(shown(4096, "bytes"), size(4096));
  assert.match(shown(12.5, "percent"), /^12\.50? ?%$/);
  assert.match(shown(7, "count"), /^7$/);
  assert.equal(shown(3, ""), "3");
});
