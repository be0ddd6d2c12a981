// Compare: what got faster or slower from another trace to this one.

import type { Page } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

const WAYS = [
  ["overview", "Overview"],
  ["op", "Operators"],
  ["kernel", "Kernels"],
  ["function", "Functions"],
  ["module", "Modules"],
  ["shape", "Shapes"],
] as const;

export function Compare(props: ViewProperties) {
  const others = props.runs.filter((run) => run.id !== props.run.id);
  const before = others.find((run) => String(run.id) === props.parameters["before"]) ?? others[0];
  const by = props.parameters["by"] ?? "overview";
  const loaded = useAnswer<Page>(before === undefined ? null : `compare?before=${before.id}&after=${props.run.id}&by=${by}`);
  if (before === undefined) return <Empty record="hotspan view before.json.gz after.json.gz" />;
  const filter = props.parameters["filter"] ?? "";
  return (
    <>
      <div class="tabs" role="group" aria-label="Compared by">
        <label>
          Before{" "}
          <select value={String(before.id)} onChange={(event) => props.change({ before: event.currentTarget.value })}>
            {others.map((run) => <option key={run.id} value={String(run.id)}>{`${run.run} / ${run.file}`}</option>)}
          </select>
        </label>
        {WAYS.map(([way, title]) => (
          <button key={way} type="button" aria-pressed={way === by} onClick={() => props.change({ by: way, filter: undefined })}>{title}</button>
        ))}
        <a href={props.to("flame", { order: "compared", before: String(before.id) })}>As a flame graph</a>
      </div>
      <Answer loaded={loaded}>
        {(page) => (
          <>
            {page.sections.length === 0 && <p class="empty">Neither trace has anything of this kind.</p>}
            {page.sections.map((section, place) =>
              place === 0 ? (
                <Table key={section.key} table={section.table} filter={filter} onFilter={(text) => props.change({ filter: text === "" ? undefined : text }, false)} />
              ) : (
                <Table key={section.key} table={section.table} />
              ),
            )}
          </>
        )}
      </Answer>
    </>
  );
}
