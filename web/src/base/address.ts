// The state of the page is in the hash of its address, so that reloading and sharing keep it: #/view?run=0&sort=name

export interface Place {
  view: string;
  parameters: Record<string, string>;
}

export function read(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { view: path === "" ? "overview" : path, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

export function link(view: string, parameters: Record<string, string>): string {
  const text = new URLSearchParams(parameters).toString();
  return `#/${view}${text === "" ? "" : `?${text}`}`;
}

/** Goes to a place; a change of what is seen in the same view makes no new entry in the history. */
export function go(view: string, parameters: Record<string, string>, keep = true): void {
  const target = link(view, parameters);
  if (keep) {
    location.hash = target;
  } else {
    history.replaceState(null, "", target);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}
