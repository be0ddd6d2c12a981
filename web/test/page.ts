// Stands in for a page where there is none: what the app asks of it when its files are read. Tests import it first.

const page = globalThis as unknown as Record<string, unknown>;
page["document"] = { getElementById: () => null };
page["location"] = { hash: "" };

/** The page is at this address now. */
export function visit(hash: string): void {
  (page["location"] as { hash: string }).hash = hash;
}
