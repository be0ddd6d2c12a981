// Notes of a timeline: a dialog to write one, and the list of them.

import { useEffect, useRef } from "preact/hooks";
import type { Note } from "../base/notes";
import { moment } from "../base/units";

export function NoteDialog(props: { at: number; onText: (text: string) => void; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const save = () => {
    const text = field.current?.value.trim() ?? "";
    if (text !== "") props.onText(text);
  };
  return (
    <dialog ref={dialog} aria-label="Note" onClose={props.onClose}>
      <h2>Note at {moment(Math.round(props.at))}</h2>
      <form method="dialog" onSubmit={save}>
        <input ref={field} type="text" maxLength={200} aria-label="Text of the note" autofocus /> <button type="submit">Save</button>
      </form>
    </dialog>
  );
}

export function NoteList(props: { notes: readonly Note[]; onGo: (note: Note) => void; onRemove: (note: Note) => void }) {
  if (props.notes.length === 0) return null;
  return (
    <section class="notes" aria-label="Notes">
      <h2>Notes</h2>
      <ul>
        {props.notes.map((note) => (
          <li key={`${note.at} ${note.text}`}>
            <button type="button" onClick={() => props.onGo(note)}>{moment(note.at)}</button> {note.text}{" "}
            <button type="button" onClick={() => props.onRemove(note)} aria-label={`Remove the note ${note.text}`}>✕</button>
          </li>
        ))}
      </ul>
    </section>
  );
}
