// Glossary: the words of the dashboard, read from the page of the documentation that explains them, and the keys.

import { words } from "../base/glossary";
import type { ViewProperties } from "./view";

/** Sections that are about the inside of hotspan are left out. */
const SHOWN = ["Time", "Idle time", "PyTorch and devices", "Memory", "Results", "Structure of a trace"];

const KEYS: readonly (readonly [keys: string, does: string])[] = [
  ["1 – 8", "choose a tab"],
  ["[ and ]", "the view before and after"],
  ["/", "search, or filter a table"],
  ["↑ and ↓", "from row to row of a table"],
  ["Enter", "open what a row stands for"],
  ["Escape", "close the panel"],
  ["?", "this page; in the timeline, its own keys"],
];

function Text({ text }: { text: string }) {
  return <>{text.split("`").map((piece, place) => (place % 2 === 1 ? <code key={place}>{piece}</code> : piece))}</>;
}

/** A view of the words in a text of the documentation. */
export function glossary(text: string) {
  const sections = words(text);
  return function Glossary(_: ViewProperties) {
    return (
      <div class="glossary">
        <section>
          <h2>Keys</h2>
          <dl>{KEYS.map(([keys, does]) => [<dt key={`${keys} key`}><kbd>{keys}</kbd></dt>, <dd key={keys}>{does}</dd>])}</dl>
        </section>
        {SHOWN.flatMap((title) => sections.filter((section) => section.title === title)).map((section) => (
          <section key={section.title}>
            <h2>{section.title}</h2>
            <dl>{section.words.map(({ word, meaning }) => [<dt key={`${word} word`}>{word}</dt>, <dd key={word}><Text text={meaning} /></dd>])}</dl>
          </section>
        ))}
      </div>
    );
  };
}
