// Opens traces that are dropped onto the page, or chosen from the command palette. They go to the server of the page.

import { useEffect, useRef, useState } from "preact/hooks";
import { provide } from "../base/commands";
import { size } from "../base/units";
import type { Run } from "../data/api";
import { Refused } from "../data/server";
import { upload } from "../data/upload";

type State = { kind: "over" } | { kind: "sending"; name: string; sent: number; bytes: number } | { kind: "failed"; name: string; error: Refused };

const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") === true;

export function DropZone({ onRun }: { onRun: (run: Run) => void }) {
  const [state, setState] = useState<State | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const latest = useRef(onRun);
  latest.current = onRun;
  const send = async (files: readonly File[]) => {
    for (const file of files) {
      const told = (sent: number) => setState({ kind: "sending", name: file.name, sent, bytes: file.size });
      told(0);
      try {
        latest.current(await upload(file, told));
        setState(null);
      } catch (error) {
        setState({ kind: "failed", name: file.name, error: error instanceof Refused ? error : new Refused(String(error), null) });
        return;
      }
    }
  };
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setState((now) => (now?.kind === "sending" ? now : { kind: "over" }));
    };
    // Leaving for another element of the page is no leaving.
    const left = (event: DragEvent) => event.relatedTarget === null && setState((now) => (now?.kind === "over" ? null : now));
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setState(null);
      void send([...(event.dataTransfer?.files ?? [])]);
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", left);
    addEventListener("drop", drop);
    const withdraw = provide(() => [{ title: "Open a trace file", run: () => field.current?.click() }]);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", left);
      removeEventListener("drop", drop);
      withdraw();
    };
  }, []);
  return (
    <>
      <input ref={field} type="file" hidden aria-label="Trace file" onChange={(event) => void send([...(event.currentTarget.files ?? [])])} />
      {state?.kind === "over" && <div class="drop" aria-hidden="true">Drop a trace to open it</div>}
      {state?.kind === "sending" && (
        <p class="notice" role="status">Opening {state.name}: {size(state.sent)} of {size(state.bytes)} <progress max={Math.max(1, state.bytes)} value={state.sent} aria-label={`Opening ${state.name}`} /></p>
      )}
      {state?.kind === "failed" && (
        <p class="notice" role="alert">{state.name}: {state.error.message} {state.error.hint} <button type="button" onClick={() => setState(null)} aria-label="Dismiss">✕</button></p>
      )}
    </>
  );
}
