// Where the calls of a flame graph stand: geometry only, of times that the server sent.

export interface FlameLayout {
  left: Float64Array;
  width: readonly number[];
  depth: Uint16Array;
  deepest: number;
  total: number;
}

/** Children side by side from where their parent begins; `begin` puts each where it was in time instead. */
export function flameLayout(parents: readonly number[], width: readonly number[], begin: readonly number[] = []): FlameLayout {
  const count = parents.length;
  const [left, depth, used] = [new Float64Array(count), new Uint16Array(count), new Float64Array(count)];
  const first = begin.reduce((least, time) => Math.min(least, time), Infinity);
  let [root, deepest, last] = [0, 0, 0];
  for (let node = 0; node < count; node++) {
    const parent = parents[node] ?? -1;
    const time = width[node] ?? 0;
    if (parent >= 0) {
      depth[node] = (depth[parent] ?? 0) + 1;
      deepest = Math.max(deepest, depth[node] ?? 0);
    }
    if (begin.length > 0) {
      left[node] = (begin[node] ?? 0) - first;
      last = Math.max(last, (left[node] ?? 0) + time);
    } else if (parent < 0) {
      left[node] = root;
      root += time;
    } else {
      left[node] = (left[parent] ?? 0) + (used[parent] ?? 0);
      used[parent] = (used[parent] ?? 0) + time;
    }
  }
  return { left, width, depth, deepest, total: Math.max(1, begin.length > 0 ? last : root) };
}
