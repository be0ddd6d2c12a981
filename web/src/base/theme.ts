// Light or dark: as the system has it until somebody chooses, and then as chosen. A cookie keeps the choice, since each start of
// the server has another port, and with it another storage; a page to share has no cookies and uses the storage.

export type Theme = "light" | "dark";

const NAME = "hotspan-theme";
const A_YEAR = 31_536_000;

function kept(): string | undefined {
  try {
    const cookie = new RegExp(`(?:^|; )${NAME}=(\\w+)`).exec(document.cookie)?.[1];
    return cookie ?? localStorage.getItem(NAME) ?? undefined;
  } catch {
    // A frame in a notebook has neither.
    return undefined;
  }
}

/** What is shown now. */
export function theme(): Theme {
  const chosen = document.documentElement.dataset["theme"];
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Shows what was chosen earlier. */
export function restoreTheme(): void {
  const chosen = kept();
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
}

export function chooseTheme(chosen: Theme): void {
  document.documentElement.dataset["theme"] = chosen;
  try {
    // biome-ignore lint/suspicious/noDocumentCookie: the other interface needs a secure origin and is asynchronous.
    document.cookie = `${NAME}=${chosen}; path=/; max-age=${A_YEAR}; samesite=strict`;
    localStorage.setItem(NAME, chosen);
  } catch {
    // The choice holds until the page is left.
  }
}
