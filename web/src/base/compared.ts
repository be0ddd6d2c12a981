// Which two traces are compared. Those who open two name the earlier one first: without a choice in the address the first trace is the one before.

interface Numbered {
  id: number;
}

export interface Pair<R> {
  before: R;
  after: R;
}

/** The two, or `null` where there is only one. */
export function compared<R extends Numbered>(runs: readonly R[], run: R, parameters: Record<string, string>): Pair<R> | null {
  const named = (key: string) => runs.find((known) => String(known.id) === parameters[key]);
  const other = (than: R) => runs.find((known) => known.id !== than.id);
  const after = named("after");
  const before = named("before") ?? (after !== undefined ? other(after) : runs[0]);
  if (before === undefined) return null;
  const second = [after, run, other(before)].find((known) => known !== undefined && known.id !== before.id);
  return second === undefined ? null : { before, after: second };
}
