// Numbers as people read them, in the units that the server names. Nothing is computed here.

export type Unit = "ns" | "bytes" | "percent" | "count" | "";

function scaled(value: number, steps: readonly (readonly [number, string])[]): string {
  const size = Math.abs(value);
  for (const [factor, name] of steps) {
    if (factor === 1 && Number.isInteger(value)) return `${value} ${name}`;
    if (size >= factor) return `${(value / factor).toFixed(size / factor >= 100 ? 1 : 3)} ${name}`;
  }
  const last = steps[steps.length - 1];
  return last === undefined ? String(value) : `${value} ${last[1]}`;
}

const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]] as const;
const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]] as const;

export function duration(nanoseconds: number): string {
  return scaled(nanoseconds, TIMES);
}

export function size(bytes: number): string {
  return scaled(bytes, SIZES);
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
      return `${value.toFixed(2)} %`;
    case "count":
      return value.toLocaleString("en-US").replaceAll(",", " ");
    default:
      return Number.isInteger(value) ? String(value) : value.toFixed(3);
  }
}
