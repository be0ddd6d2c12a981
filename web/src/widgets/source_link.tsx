// A line of source; one that says in which folder its file is leads to the text.

type To = (view: string, parameters: Record<string, string>) => string;

export function SourceLink({ place, to }: { place: string; to: To }) {
  const [, file, line] = /^(\/.*\.py):(\d+)$/.exec(place) ?? [];
  if (file === undefined || line === undefined) return <code>{place}</code>;
  return <a href={to("source", { file, line })}><code title={place}>{place.replace(/^.*\//, "")}</code></a>;
}
