// A row of tabs. Those with nothing to show are grey, and say what to record; they can be opened all the same.

export interface TabLink {
  name: string;
  title: string;
  href: string;
  current: boolean;
  /** What to record, where there is nothing to show. */
  record: string | null;
  /** The key that chooses it. */
  hotkey?: string;
}

export function TabBar({ links, label, inner = false }: { links: readonly TabLink[]; label: string; inner?: boolean }) {
  return (
    <nav class={inner ? "views inner" : "views"} aria-label={label}>
      {links.map((link) => {
        const words = link.record === null ? (link.hotkey === undefined ? undefined : `Key ${link.hotkey}`) : `Nothing was recorded for it. To fill it: ${link.record}`;
        return (
          <a key={link.name} href={link.href} class={link.record === null ? "" : "nothing"} data-tab={link.name} aria-current={link.current ? (inner ? "page" : "true") : undefined} title={words}>
            {link.title}
            {link.record !== null && <span class="hidden"> (nothing recorded)</span>}
          </a>
        );
      })}
    </nav>
  );
}
