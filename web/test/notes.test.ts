// Notes in addresses: what was written comes back, and what is none does no harm.

import assert from "node:assert/strict";
import { test } from "node:test";
import { notesOf, notesText } from "../src/base/notes";

test("notes come back in order of time", () => {
  const text = notesText([
    { at: 70.4, text: "later" },
    { at: 5, text: "<b>&#" },
  ]);
  assert.deepEqual(notesOf(text), [
    { at: 5, text: "<b>&#" },
    { at: 70, text: "later" },
  ]);
  assert.equal(notesText([]), undefined);
});

test("what is no note is left out, and there is an end to them", () => {
  for (const text of [undefined, "", "{", "null", "[1]", '[["a","b"]]', "[[1]]"]) assert.deepEqual(notesOf(text), []);
  const many = JSON.stringify(Array.from({ length: 100 }, (_, at) => [at, "x".repeat(500)]));
  assert.equal(notesOf(many).length, 50);
  assert.ok(notesOf(many).every((note) => note.text.length === 200));
});
