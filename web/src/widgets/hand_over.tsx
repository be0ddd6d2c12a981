// The menu that hands a trace, or a stretch of it, to other programs: as a file, or to Perfetto's page.

import { useState } from "preact/hooks";
import { chosen } from "../base/ranges";
import { duration } from "../base/units";
import type { Run } from "../data/api";
import { openInPerfetto, PERFETTO_PAGE } from "../data/perfetto";
import { isStatic } from "../data/server";

const FORMATS = [
  { name: "chrome", title: "Chrome trace", ending: "json.gz" },
  { name: "speedscope", title: "speedscope", ending: "speedscope.json.gz" },
  { name: "collapsed", title: "Collapsed stacks", ending: "collapsed.txt" },
  { name: "hotspan", title: ".hotspan", ending: "hotspan" },
] as const;

export function HandOver({ run, parameters }: { run: Run; parameters: Record<string, string> }) {
  const [problem, setProblem] = useState("");
  const [whole, setWhole] = useState(false);
  const range = chosen(parameters);
  const cut = range === null || whole ? "" : `?begin=${Math.round(range.begin)}&end=${Math.round(range.end)}`;
  const stem = `${run.worker}${cut === "" ? "" : "-range"}`.replace(/[^\w.-]+/g, "_");
  const address = (format: string) => `./api/run/${run.id}/export/${format}${cut}`;
  const perfetto = (event: MouseEvent) => {
    event.preventDefault();
    setProblem("");
    const bytes = async () => (await fetch(address("chrome"))).arrayBuffer();
    openInPerfetto(stem, bytes).catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  };
  return (
    <details class="menu">
      <summary>Save as…</summary>
      <div>
        {isStatic ? (
          <p class="quiet">This page has no trace in it. Who has the trace can write other formats: <code>hotspan export {run.file} --to chrome -o trace.json.gz</code></p>
        ) : (
          <>
            {range !== null && (
              <label>
                <input type="checkbox" checked={!whole} onChange={(event) => setWhole(!event.currentTarget.checked)} /> only the {duration(range.end - range.begin)} that {parameters["begin"] === undefined ? "are seen" : "are selected"}
              </label>
            )}
            <ul>
              {FORMATS.map((format) => (
                <li key={format.name}><a href={address(format.name)} download={`${stem}.${format.ending}`}>{format.title}</a></li>
              ))}
              <li><a href={PERFETTO_PAGE} rel="noreferrer" onClick={perfetto}>Open in Perfetto</a> <span class="quiet">ui.perfetto.dev; nothing is uploaded</span></li>
            </ul>
          </>
        )}
        {problem !== "" && <p role="alert">{problem}</p>}
      </div>
    </details>
  );
}
