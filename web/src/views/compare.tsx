// Compare: what got faster or slower from another trace to this one.

import type { Page } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

const WAYS = ["op", "kernel", "function", "module", "shape"] as const;

export function Compare(props: ViewProperties) {
  const others = props.runs.filter((run) => run.id !== props.run.id);
  const before = others.find((run) => String(run.id) === props.parameters["before"]) ?? others[0];
  const by = props.parameters["by"] ?? "op";
  const loaded = useAnswer<Page>(before === undefined ? null : `compare?before=${before.id}&after=${props.run.id}&by=${by}`);
  if (before === undefined) return <Empty record="hotspan view before.json.gz after.json.gz" />;
  return (
    <>
      <nav class="tabs">
        <label>
          Before{" "}
          <select value={String(before.id)} onChange={(event) => props.change({ before: event.currentTarget.value })}>
            {others.map((run) => <option key={run.id} value={String(run.id)}>{`${run.run} / ${run.file}`}</option>)}
          </select>
        </label>
        {WAYS.map((way) => (
          <button key={way} type="button" aria-pressed={way === by} onClick={() => props.change({ by: way })}>{way}</button>
        ))}
      </nav>
      <Answer loaded={loaded}>{(page) => <>{page.sections.map((section) => <Table key={section.key} table={section.table} />)}</>}</Answer>
    </>
  );
}
