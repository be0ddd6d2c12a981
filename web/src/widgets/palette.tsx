// The command palette: Ctrl-K, some letters, Enter. It offers the views, and what the view that is shown provides.

import { useEffect, useRef, useState } from "preact/hooks";
import { fitting, offered, type Command } from "../base/commands";

const MOST = 60;

export function openPalette(): void {
  dispatchEvent(new CustomEvent("palette"));
}

export function Palette({ views }: { views: readonly Command[] }) {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      setOpen(true);
    };
    const asked = () => setOpen(true);
    addEventListener("keydown", pressed);
    addEventListener("palette", asked);
    return () => {
      removeEventListener("keydown", pressed);
      removeEventListener("palette", asked);
    };
  }, []);
  return open ? <Choice views={views} onClose={() => setOpen(false)} /> : null;
}

function Choice({ views, onClose }: { views: readonly Command[]; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const [all] = useState(() => [...offered(), ...views]);
  const [text, setText] = useState("");
  const [place, setPlace] = useState(0);
  const shown = fitting(all, text).slice(0, MOST);
  const current = Math.min(place, Math.max(0, shown.length - 1));
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => list.current?.children[current]?.scrollIntoView({ block: "nearest" }), [current, text]);
  const run = (command: Command | undefined) => {
    dialog.current?.close();
    command?.run();
  };
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setPlace((current + step + shown.length) % Math.max(1, shown.length));
    else if (event.key === "Enter") run(shown[current]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Commands" onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${current}`}
        aria-label="Command"
        placeholder="Type a command, a view, a track or a step"
        autofocus
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setPlace(0);
        }}
        onKeyDown={pressed}
      />
      {shown.length === 0 && <p class="quiet">No match.</p>}
      <ul ref={list} id="palette-list" role="listbox" aria-label="Commands">
        {shown.map((command, number) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
          <li key={`${number} ${command.title}`} id={`palette-${number}`} role="option" tabIndex={-1} aria-selected={number === current} onClick={() => run(command)} onMouseMove={() => setPlace(number)}>
            {command.title}
            {command.keys !== undefined && <kbd>{command.keys}</kbd>}
          </li>
        ))}
      </ul>
    </dialog>
  );
}
