// Doors: what a row of a table leads to. The open one is in the address as `open`: the question that the server answers about it.

import { go, link, read } from "./address";

/** The address with another door open. */
export function doorway(door: string): string {
  const { view, parameters } = read();
  return link(view, { ...parameters, open: door });
}

export function openDoor(door: string): void {
  const { view, parameters } = read();
  go(view, { ...parameters, open: door });
}

export function closeDoor(): void {
  const { view, parameters } = read();
  const { open: _, ...others } = parameters;
  go(view, others);
}

/** The question behind the open door, written anew: nothing but a query can come out of an address. */
export function questionOf(open: string, range: { begin: number; end: number } | null): string {
  const query = new URLSearchParams(open);
  for (const name of ["begin", "end"]) query.delete(name);
  if (range !== null) {
    query.set("begin", String(Math.round(range.begin)));
    query.set("end", String(Math.round(range.end)));
  }
  return query.toString();
}

/** The parameters of a timeline that shows a call: where it lies is found anew, what is folded and pinned stays. */
export function timelineOf(call: { span: number; begin: number }, keepOpen: boolean): Record<string, string> {
  const { view, parameters } = read();
  const leaves = ["from", "to", "call", "hit", ...(keepOpen ? [] : ["open"])];
  const kept = Object.entries(parameters).filter(([name]) => (view === "timeline" || ["begin", "end", "open"].includes(name)) && !leaves.includes(name));
  return { ...Object.fromEntries(kept), span: String(call.span), at: String(Math.round(call.begin)) };
}
