// Addresses: what is written is read again, doors are opened and closed in them, ranges are read with care.

import { visit } from "./page";
import assert from "node:assert/strict";
import { test } from "node:test";
import { link, read } from "../src/base/address";
import { doorway, questionOf, timelineAround, timelineOf } from "../src/base/doors";
import { chosen, keptRange, rangeTitle, selected, stepsOf, within } from "../src/base/ranges";

const DOOR = "kind=operator&name=aten%3A%3Amm%26&device=CPU";

test("an address is read as it was written", () => {
  const parameters = { run: "0", filter: "a&b=c#d ü", sort: "-count" };
  visit(link("operators", parameters));
  assert.deepEqual(read(), { view: "operators", parameters });
  visit("");
  assert.deepEqual(read(), { view: "overview", parameters: {} });
});

test("a door is part of the address, and what is behind it is asked for as it was written", () => {
  visit("#/operators?run=3&sort=-count");
  visit(doorway(DOOR));
  assert.deepEqual(read(), { view: "operators", parameters: { run: "3", sort: "-count", open: DOOR } });
  assert.equal(questionOf(DOOR, null), "kind=operator&name=aten%3A%3Amm%26&device=CPU");
  assert.equal(questionOf(`${DOOR}&begin=1`, { begin: 10.4, end: 20 }), `${DOOR}&begin=10&end=20`);
});

test("whatever an address holds, only a query comes out of it", () => {
  for (const hostile of ["../../x", "a#b", "https://example.org/?q", "a?b", "\u0000\n"]) assert.match(questionOf(hostile, null), /^[\w%.&=+*-]*$/);
});

test("a call leads to the timeline, which keeps what is folded and finds its place anew", () => {
  visit(link("timeline", { run: "0", fold: "3", from: "1", to: "2", span: "5", at: "1", open: DOOR, begin: "0", end: "9" }));
  assert.deepEqual(timelineOf({ span: 7, begin: 12.6 }, true), { run: "0", fold: "3", open: DOOR, begin: "0", end: "9", span: "7", at: "13" });
  visit(link("operators", { run: "0", sort: "name", open: DOOR }));
  assert.deepEqual(timelineOf({ span: null, begin: 12 }, false), { at: "12" });
  assert.deepEqual(timelineAround(10_000, 30_000, true), { open: DOOR, from: "0", to: "40000" });
});

test("a range needs two numbers in order", () => {
  assert.deepEqual(selected({ begin: "1", end: "5" }), { begin: 1, end: 5 });
  for (const [begin, end] of [
    ["5", "1"],
    ["1", "1"],
    ["x", "5"],
    ["1", "Infinity"],
  ] as const)
    assert.equal(selected({ begin, end }), null);
  assert.equal(selected({ begin: "1" }), null);
  assert.deepEqual(chosen({ from: "2", to: "3" }), { begin: 2, end: 3 });
  assert.deepEqual(chosen({ from: "2", to: "3", begin: "1", end: "5" }), { begin: 1, end: 5 });
});

const STEPS = [5, 6, 7].map((number) => ({ name: String(number), begin: number * 1e8, end: number * 1e8 + 9e7 }));

test("a range is called by its steps, or else by its time", () => {
  assert.equal(rangeTitle({ begin: 5e8, end: 7.9e8 }, STEPS), "Steps 5–7");
  assert.equal(rangeTitle({ begin: 6e8, end: 6.9e8 }, STEPS), "Step 6");
  assert.equal(rangeTitle({ begin: 6e8 + 1e6, end: 6.9e8 - 1e6 }, STEPS), "Step 6");
  assert.equal(rangeTitle({ begin: 378e6, end: 630e6 }, STEPS), "378–630 ms");
  assert.equal(stepsOf({ begin: 7e8, end: 5.9e8 }, STEPS), null);
  assert.equal(rangeTitle({ begin: 0, end: 5e8 }, []), "0–500 ms");
});

test("a range is part of questions and addresses", () => {
  assert.equal(within("run/0/flame", { begin: 1.4, end: 20 }), "run/0/flame?begin=1&end=20");
  assert.equal(within("run/0/flame/time?thread=3", { begin: 1, end: 2 }), "run/0/flame/time?thread=3&begin=1&end=2");
  assert.deepEqual(keptRange({ run: "1", begin: "2", end: "3", sort: "-x" }), { begin: "2", end: "3" });
  assert.deepEqual(keptRange({ begin: "2" }), {});
});
