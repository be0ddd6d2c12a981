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

/** What the address keeps when it leads to the timeline: what is folded and pinned there, the range, and the panel if there is room. */
function kept(keepOpen: boolean): Record<string, string> {
  const { view, parameters } = read();
  const leaves = ["from", "to", "top", "call", "hit", "span", "at", ...(keepOpen ? [] : ["open"])];
  const stays = (name: string) => (view === "timeline" || ["begin", "end", "open"].includes(name)) && !leaves.includes(name);
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => stays(name)));
}

/** The parameters of a timeline that shows a call, or just a moment: where it lies is found anew. */
export function timelineOf(call: { span: number | null; begin: number }, keepOpen: boolean): Record<string, string> {
  return { ...kept(keepOpen), ...(call.span === null ? {} : { span: String(call.span) }), at: String(Math.round(call.begin)) };
}

/** The parameters of a timeline that shows a stretch of time in the middle of its width; no span is chosen in it. */
export function timelineAround(begin: number, end: number, keepOpen: boolean): Record<string, string> {
  const margin = Math.max(1000, (end - begin) / 2);
  return { ...kept(keepOpen), from: String(Math.round(begin - margin)), to: String(Math.round(end + margin)) };
}
