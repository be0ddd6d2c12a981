// What one prefers, kept by the browser. Where it keeps nothing, as for a page from the disk, the preference lasts as long as the page.

const known = new Map<string, string>();

export function remembered(name: string): string | null {
  try {
    return known.get(name) ?? localStorage.getItem(`hotspan.${name}`);
  } catch {
    return known.get(name) ?? null;
  }
}

export function remember(name: string, value: string): void {
  known.set(name, value);
  try {
    localStorage.setItem(`hotspan.${name}`, value);
  } catch {
    // It lasts as long as the page.
  }
}
