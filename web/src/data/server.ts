// Asking the server. Answers that do not change while a trace is shown are asked for once.

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { type Stretch, within } from "../base/ranges";
import type { Problem } from "./api";
import { HeldSpans } from "./held_spans";

export class Refused extends Error {
  constructor(
    message: string,
    readonly hint: string | null,
  ) {
    super(message);
  }
}

/** The answers in the page itself, where it is one to share. */
const inlined = (() => {
  const element = document.getElementById("answers");
  return element === null ? null : (JSON.parse(element.textContent ?? "{}") as Record<string, unknown>);
})();

/** Whether the page has its data in it and nobody to ask for more. */
export const isStatic = inlined !== null;

/** The single spans of each trace in a page to share. */
const held = new Map<number, HeldSpans>();

function heldOf(run: number): HeldSpans | null {
  if (inlined === null) return null;
  const known = held.get(run) ?? HeldSpans.of(inlined, run);
  if (known !== null) held.set(run, known);
  return known;
}

/** Whether every span of a trace can be searched for and looked at. */
export function knowsSpans(run: number): boolean {
  return !isStatic || heldOf(run)?.all === true;
}

/** Whether a span of a trace can be looked at; -1 for a sampled call. */
export function knowsSpan(run: number, span: number): boolean {
  return !isStatic || heldOf(run)?.has(span) === true;
}

export async function ask<T>(call: string, signal?: AbortSignal): Promise<T> {
  if (inlined !== null) {
    // The list of traces is asked for again and again; every other question is answered as it was asked or not at all.
    const known = inlined[call.startsWith("runs?") ? "runs" : call];
    if (known !== undefined) return known as T;
    const [, run, question] = /^run\/(\d+)\/(.*)$/.exec(call) ?? [];
    const found = run === undefined || question === undefined ? undefined : await heldOf(Number(run))?.answer(question);
    if (found !== undefined) return found as T;
    throw new Refused("This page to share has no answer to that.", "Open the trace itself with `hotspan view`.");
  }
  return (await (await respond(call, signal)).json()) as T;
}

/** An answer that is no JSON. */
export async function askBytes(call: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  return (await respond(call, signal)).arrayBuffer();
}

async function respond(call: string, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`./api/${call}`, signal === undefined ? {} : { signal });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refused("The server does not answer.", "Is `hotspan view` still running? Start it again and open the address it prints.");
  }
  if (response.ok) return response;
  let problem: Problem = { message: `The server answered ${response.status}.`, hint: null };
  try {
    problem = (await response.json()) as Problem;
  } catch {
    // The status is all there is to tell.
  }
  throw new Refused(problem.message, problem.hint);
}

/** The range that the page is about; `null` for all of the time. */
export const ChosenRange = createContext<Stretch | null>(null);

/** Answers that are computed for a range. What is drawn over all of the time has the range marked in it, and asks for all. */
const RANGED = /^run\/\d+\/(table\/(?!quality)|advice|verdict|flame|sandwich)/;

/** The call for the chosen range, where it has an answer for one. */
export function ranged(call: string, range: Stretch | null): string {
  return range === null || !RANGED.test(call) || /[?&]begin=/.test(call) ? call : within(call, range);
}

export type Loaded<T> = { state: "waiting" } | { state: "failed"; error: Refused } | { state: "ready"; value: T };

/** An answer about the chosen range, asked for again when the call changes; `null` asks for nothing. */
export function useAnswer<T>(wanted: string | null): Loaded<T> {
  const range = useContext(ChosenRange);
  const call = wanted === null ? null : ranged(wanted, range);
  const [loaded, setLoaded] = useState<{ call: string | null; value: Loaded<T> }>({ call: null, value: { state: "waiting" } });
  useEffect(() => {
    if (call === null) return;
    const controller = new AbortController();
    ask<T>(call, controller.signal).then(
      (value) => setLoaded({ call, value: { state: "ready", value } }),
      (error: unknown) => {
        if (controller.signal.aborted) return;
        const refused = error instanceof Refused ? error : new Refused(String(error), null);
        setLoaded({ call, value: { state: "failed", error: refused } });
      },
    );
    return () => controller.abort();
  }, [call]);
  return loaded.call === call ? loaded.value : { state: "waiting" };
}
