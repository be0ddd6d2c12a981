// Colours: one for each name, the same in every view; kinds of spans have their own hue. What parts of time and memory mean is in meaning.ts.

import { GREY, meant } from "./meaning";
import { theme } from "./theme";

const HUES: readonly (readonly [RegExp, number])[] = [
  [/^(kernel|Kernel|concurrent_kernel)$/, 150],
  [/memcpy|memset|Memcpy|Memset/, 35],
  [/runtime|driver|Runtime/, 265],
  [/annotation/, 200],
  [/python|Python|sample/, 50],
  [/cpu_op|Operator/, 220],
];

function hash(text: string): number {
  let value = 2166136261;
  for (let place = 0; place < text.length; place++) value = Math.imul(value ^ text.charCodeAt(place), 16777619);
  return value >>> 0;
}

/** Red, green and blue of a colour, packed as a canvas has its pixels. */
export function packed(hue: number, saturation: number, light: number): number {
  const strength = saturation * Math.min(light, 1 - light);
  const channel = (place: number) => {
    const turn = (place + (((hue % 360) + 360) % 360) / 30) % 12;
    return Math.round(255 * (light - strength * Math.max(-1, Math.min(turn - 3, 9 - turn, 1))));
  };
  return ((255 << 24) | (channel(4) << 16) | (channel(8) << 8) | channel(0)) >>> 0;
}

/** A colour mixed with the background, packed: names on it stay readable. */
function tinted(colour: string, dark: boolean, share: number): number {
  const behind = dark ? 24 : 255;
  const channel = (place: number) => Math.round(Number.parseInt(colour.slice(place, place + 2), 16) * share + behind * (1 - share));
  return ((255 << 24) | (channel(5) << 16) | (channel(3) << 8) | channel(1)) >>> 0;
}

/** How categories of idle time begin; the cause follows. */
const IDLE = "idle ";

/** The colour of a span, packed. */
export function spanColour(name: string, category: string, dark: boolean, faded: boolean): number {
  if (category.startsWith(IDLE)) return tinted(meant(category.slice(IDLE.length)) ?? GREY, dark, faded ? 0.12 : 0.6);
  const hue = HUES.find(([pattern]) => pattern.test(category))?.[1] ?? 320;
  const mixed = hash(name);
  const light = (dark ? 38 : 72) + (mixed % 13) - 6;
  const turned = hue + ((mixed >>> 8) % 31) - 15;
  return faded ? packed(turned, 0.12, dark ? 0.19 : 0.9) : packed(turned, dark ? 0.38 : 0.52, light / 100);
}

export function heatColour(name: string, dark: boolean): string {
  const mixed = hash(name);
  return `hsl(${15 + (mixed % 40)} ${dark ? 50 : 80}% ${(dark ? 36 : 68) + ((mixed >> 8) % 11) - 5}%)`;
}

/** A colour for each name. */
export function named(name: string, dark: boolean): string {
  const mixed = hash(name);
  return `hsl(${(mixed * 137) % 360} ${dark ? 32 : 48}% ${(dark ? 34 : 72) + ((mixed >>> 9) % 9) - 4}%)`;
}

export const PARTS = ["#4c8bf5", "#e8710a", "#12a05c", "#a142f4", "#d93b6f", "#12a4b4", "#9a8b00", "#7b5e57"] as const;

export function part(index: number): string {
  return PARTS[index % PARTS.length] ?? GREY;
}

/** The colour of a part with a name: that of its meaning, or one by its place among the others. */
export function namedPart(name: string, index: number): string {
  return meant(name) ?? part(index);
}

export function prefersDark(): boolean {
  return theme() === "dark";
}

/** Red for what takes longer than before, blue for what takes less: the more, the deeper. */
export function changeColour(before: number, after: number, dark: boolean): string {
  const change = (after - before) / Math.max(1, before, after);
  const strength = Math.min(1, Math.abs(change));
  const light = dark ? 30 + strength * 8 : 88 - strength * 26;
  return `hsl(${change > 0 ? 8 : 215} ${Math.round(strength * (dark ? 60 : 85))}% ${Math.round(light)}%)`;
}
