// The words of docs/glossary.md: sections of `- **Word**: what it means`, without the names that only the sources have.

export interface Section {
  title: string;
  words: { word: string; meaning: string }[];
}

export function words(text: string): Section[] {
  return text
    .split(/^## /m)
    .slice(1)
    .map((part) => {
      const [title = "", ...lines] = part.split("\n");
      const items = lines.join("\n").split(/^- /m).slice(1);
      const found = items.flatMap((item) => {
        const [, word, meaning] = /^\*\*(.+?)\*\*((?:,| \().*|: [\s\S]*)$/.exec(item.replaceAll(/\s+/g, " ").trim()) ?? [];
        if (word === undefined || meaning === undefined) return [];
        return [{ word: plain(word), meaning: plain(meaning.replace(/^: /, "").replace(/^, \*\*(.+?)\*\*: /, "($1) ")) }];
      });
      return { title: title.trim(), words: found };
    });
}

/** Without links, and without what stands in brackets for readers of the sources. */
function plain(text: string): string {
  return text
    .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1")
    .replaceAll(/ \((?:`[^`]+`[,;]? ?)+\w*\)/g, "")
    .replaceAll("**", "");
}
