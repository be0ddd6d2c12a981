// What tells the colour of a call in a flame graph: its name, the library, the file, or whose code it is.

import { heatColour, named } from "./colour";

/** As the server describes what is called. */
interface Place {
  name: string;
  file: string;
  origin: string;
  library: string;
}

export const FLAME_COLOURS = [
  ["name", "Name"],
  ["code", "Whose code"],
  ["library", "Library"],
  ["file", "File"],
] as const;

export type FlameColour = (typeof FLAME_COLOURS)[number][0];

const CODE: Record<string, readonly [title: string, hue: number, saturation: number]> = {
  yours: ["Your code", 28, 85],
  library: ["Libraries", 215, 40],
  other: ["Operators, built-ins, threads", 150, 30],
  native: ["Compiled code", 285, 25],
};

function tint([, hue, saturation]: readonly [string, number, number], dark: boolean): string {
  return `hsl(${hue} ${Math.round(saturation * (dark ? 0.6 : 1))}% ${dark ? 36 : 70}%)`;
}

export function flameColour(place: Place, by: FlameColour, dark: boolean): string {
  if (by === "name") return heatColour(place.name, dark);
  const code = CODE[place.origin];
  if (by === "code") return tint(code ?? ["", 0, 0], dark);
  const text = by === "library" ? place.library : place.file;
  // What is in no library is told by whose it is.
  return text === "" ? tint(place.origin === "yours" && code !== undefined ? code : ["", 220, 8], dark) : named(text, dark);
}

/** What colours mean, where they do: the libraries that come first cost most. */
export function flameLegend(places: readonly Place[], by: FlameColour, dark: boolean): [title: string, colour: string][] {
  if (by === "code") return Object.values(CODE).map((code) => [code[0], tint(code, dark)]);
  if (by !== "library") return [];
  const libraries = [...new Set(places.map((place) => place.library).filter((library) => library !== ""))].slice(0, 10);
  const yours = places.some((place) => place.origin === "yours");
  return [...(yours ? [["Your code", tint(CODE["yours"] ?? ["", 0, 0], dark)] as [string, string]] : []), ...libraries.map((library): [string, string] => [library, named(library, dark)])];
}
