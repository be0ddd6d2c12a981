// Numbers as people read them, in the units that the server names: three digits that count, as crates/hotspan-store/src/units.rs writes them.
// Nothing is computed here.

export type Unit = "ns" | "bytes" | "percent" | "count" | "ordinal" | "";

type Scale = readonly (readonly [factor: number, name: string])[];

const TIMES: Scale = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const SIZES: Scale = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
const LARGE: Scale = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"]];

/** Three digits that count, and no more decimals than `most`. */
export function digits(value: number, most = 2): string {
  const size = Math.abs(value);
  let [decimals, limit] = [0, 99.95];
  while (decimals < most && size < limit) [decimals, limit] = [decimals + 1, limit / 10];
  return size === 0 ? "0" : value.toFixed(decimals);
}

/** With the largest unit of which it has one, rounded; `step` is the next unit in multiples of this one. */
function scaled(value: number, steps: Scale, step: number): string {
  const size = Math.abs(value);
  for (const [factor, name] of steps) {
    if (factor === 1) return `${Number.isInteger(value) ? value : digits(value)} ${name}`;
    if (size >= factor * (1 - 0.5 / step)) return `${digits(value / factor)} ${name}`;
  }
  return String(value);
}

export function duration(nanoseconds: number): string {
  return scaled(nanoseconds, TIMES, 1000);
}

export function size(bytes: number): string {
  return scaled(bytes, SIZES, 1024);
}

export function percent(value: number): string {
  return `${digits(value)} %`;
}

/** A point in time: moments that are `apart` differ in what is written. */
export function moment(nanoseconds: number, apart = 1): string {
  const [factor, name] = TIMES.find(([known]) => Math.abs(nanoseconds) >= known) ?? [1, "ns"];
  const decimals = Math.min(Math.log10(factor), Math.max(0, Math.ceil(Math.log10(factor / Math.max(1, apart)))));
  return `${(nanoseconds / factor).toFixed(decimals)} ${name}`;
}

/** From one point in time to another, in the unit of the later one: 378–630 ms. */
export function span(begin: number, end: number): string {
  const [factor, name] = TIMES.find(([known]) => Math.abs(end) >= known) ?? [1, "ns"];
  const decimals = Math.max(0, Math.min(6, Math.ceil(Math.log10(factor / Math.max(1, end - begin))) + 2));
  const text = (moment: number) => (moment / factor).toFixed(factor === 1 ? 0 : decimals);
  return `${text(begin)}–${text(end)} ${name}`;
}

/** A number that counts nothing in particular. */
function plain(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const large = LARGE.find(([factor]) => Math.abs(value) >= factor);
  return large === undefined ? digits(value, 6) : `${digits(value / large[0])} ${large[1]}`;
}

/** A value of a table with its unit beside it. */
export function shown(value: string | number | null, unit: string): string {
  if (value === null) return "–";
  if (typeof value === "string") return value;
  switch (unit) {
    case "ns":
      return duration(value);
    case "bytes":
      return size(value);
    case "percent":
      return percent(value);
    case "count":
      return value.toLocaleString("en-US").replaceAll(",", " ");
    case "ordinal":
      return String(value);
    default:
      return plain(value);
  }
}
