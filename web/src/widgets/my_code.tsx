// The switch between all code and the user's own, which Functions, Source and the flame graph have in common: it stays while views change.

import { isStatic } from "../data/server";

/** What the address calls it. */
const NAME = "mine";

/** The part of an address that stays. */
export function keptMyCode(parameters: Record<string, string>): Record<string, string> {
  return parameters[NAME] === "1" ? { [NAME]: "1" } : {};
}

/** The question to the server, with what the switch says; a page to share has all code only. */
export function ofMyCode(call: string, parameters: Record<string, string>): string {
  return parameters[NAME] === "1" && !isStatic ? `${call}?${NAME}=1` : call;
}

interface Properties {
  parameters: Record<string, string>;
  change: (parameters: Record<string, string | undefined>) => void;
  /** What is left out. */
  help: string;
  /** What else goes from the address with a turn of the switch. */
  also?: Record<string, undefined>;
}

export function MyCode(props: Properties) {
  if (isStatic) return null;
  const pressed = props.parameters[NAME] === "1";
  return (
    <button type="button" title={props.help} aria-pressed={pressed} onClick={() => props.change({ [NAME]: pressed ? undefined : "1", ...props.also })}>My code only</button>
  );
}
