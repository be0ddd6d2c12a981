// The keys of the timeline: what each does, and the list of them that `?` shows.

import { useEffect, useRef } from "preact/hooks";

const KEYS: readonly (readonly [keys: string, does: string])[] = [
  ["W / S", "zoom in and out where the mouse is"],
  ["A / D", "move left and right"],
  ["← / →", "the span before and after the selected one in its row"],
  ["↑ / ↓", "the span around the selected one, the first in it, or the next track; without one a span in the middle"],
  [", / .", "the previous and the next span of the same name"],
  ["Shift and ↑ / ↓", "scroll"],
  ["N / P", "next and previous match of the search; Enter and Shift+Enter in the field"],
  ["/", "search"],
  ["F", "focus: fill the width with the selected span or the selected range"],
  ["M", "mark: select the time of the selected span, or everything visible"],
  ["T", "text: write a note at the selected span, or where the mouse is"],
  ["L", "follow the first link of the selected span: launch, kernel, forward, backward"],
  ["U", "go to the span around the selected one"],
  ["0", "show everything"],
  ["Ctrl and K", "all commands"],
  ["Escape", "clear the span, then the range"],
  ["Drag", "move, or select: the button above the tracks chooses; with Shift the other one"],
  ["Drag of a selection", "select time; down over tracks: only those. The edges can be dragged, and so can the ruler"],
  ["Ctrl and wheel", "zoom; two fingers do the same"],
  ["Click", "on a span: its details; on a title: fold; on “pin”: keep the track on top"],
];

/** Calls what a pressed key stands for, unless somebody is writing. */
export function useKeys(actions: Readonly<Record<string, () => void>>): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const writing = event.target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      // A dialog has its own keys.
      if (writing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null) return;
      const key = event.key.length === 1 ? event.key.toLowerCase() : `${event.shiftKey ? "Shift+" : ""}${event.key}`;
      const action = latest.current[key];
      if (action === undefined) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

export function KeyHelp(props: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-label="Keys" onClose={props.onClose}>
      <h2>Keys of the timeline</h2>
      <dl>{KEYS.map(([keys, does]) => [<dt key={keys}>{keys}</dt>, <dd key={does}>{does}</dd>])}</dl>
      <form method="dialog"><button type="submit">Close</button></form>
    </dialog>
  );
}
