// Commands that a view offers to the palette. A view provides its own while it is shown; nobody else needs to know them.

export interface Command {
  title: string;
  /** The key that does the same. */
  keys?: string;
  run: () => void;
}

type Source = () => readonly Command[];

const sources = new Set<Source>();

/** Offers commands until the returned function is called. They are made when somebody looks. */
export function provide(source: Source): () => void {
  sources.add(source);
  return () => {
    sources.delete(source);
  };
}

export function offered(): Command[] {
  return [...sources].flatMap((source) => source());
}

/** Those that have all words of a text in their title, in any order; the ones that begin with it first. */
export function fitting(commands: readonly Command[], text: string): Command[] {
  const wanted = text.toLowerCase().trim();
  const words = wanted.split(/\s+/);
  const kept = commands.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)));
  const begins = ({ title }: Command) => title.toLowerCase().startsWith(wanted);
  return [...kept.filter(begins), ...kept.filter((command) => !begins(command))];
}
