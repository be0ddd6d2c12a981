// Meanings and words: one colour for each meaning, and the glossary as the documentation has it.

import "./page";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { words } from "../src/base/glossary";
import { MEANINGS, meant } from "../src/base/meaning";

/** What the server calls the same thing in different tables. */
const SAME = [
  ["DataLoader", "data_loader"],
  ["operators", "torch operators (CPU)", "Compute", "compute"],
  ["Exposed communication", "communication", "Communication call"],
  ["Exposed copy", "copy", "Copy"],
  ["Waiting for device", "waiting for the GPU", "synchronise", "Synchronising call", "Waiting for the device"],
  ["python", "Python code"],
  ["host_late", "Host too slow to launch"],
  ["dispatch", "Launched, not started"],
  ["idle", "Idle", "other", "Unknown", "not recorded", "Nothing recorded"],
  ["optimizer_state", "Optimizer state"],
  ["wait", "waiting for threads or processes"],
];

test("what means the same has one colour, what means something else another", () => {
  for (const names of SAME) assert.equal(new Set(names.map(meant)).size, 1, names.join());
  const colours = SAME.map(([first]) => meant(first ?? ""));
  assert.ok(colours.every((colour) => colour !== undefined));
  // Memory is never drawn beside time.
  assert.equal(new Set(colours.slice(0, 9)).size, 9);
  assert.equal(meant("native code: numpy"), meant("native code: torch"));
  assert.equal(meant("no such thing"), undefined);
});

test("no name has two meanings", () => {
  const names = [...SAME.flat(), "I/O", "garbage collection", "importing modules", "sleeping", "exit", "hotspan itself", "Parameter", "Input"];
  for (const name of names) assert.equal(MEANINGS.filter(([, , pattern]) => pattern.test(name.toLowerCase())).length, 1, name);
});

test("the glossary is read from its page, without what is for readers of the sources", () => {
  const sections = words(readFileSync("../docs/glossary.md", "utf8"));
  const all = sections.flatMap((section) => section.words);
  assert.ok(all.length > 60);
  const meaning = (word: string) => all.find((known) => known.word === word)?.meaning ?? "";
  assert.match(meaning("Self time"), /^the duration of a call without the calls inside it/);
  assert.equal(meaning("Host too slow to launch"), "the host ran operators or Python and had not launched the next work yet.");
  assert.ok(all.every(({ word, meaning }) => word !== "" && meaning !== "" && !/\*\*|\]\(/.test(word + meaning)));
});
