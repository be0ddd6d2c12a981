// Data quality: what was lost or repaired, what recording cost, and what is in the trace.

import type { Page } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

const LOSSES = "Losses";
/** What a person who doubts a number looks for. */
const FIRST = [LOSSES, "Cost of recording"];

export function Quality(props: ViewProperties) {
  const loaded = useAnswer<Page>(`run/${props.run.id}/table/quality`);
  const missing = useAnswer<string[]>(`run/${props.run.id}/missing`);
  const words = missing.state === "ready" ? missing.value : [];
  return (
    <Answer loaded={loaded}>
      {(page) => {
        if (page.sections.length === 0) return <Empty record={page.record} />;
        const lost = page.sections.some((section) => section.key === LOSSES);
        const first = (key: string) => (FIRST.includes(key) ? 0 : 1);
        return (
          <>
            <p role="status">{lost ? "Something is missing from this trace, or was repaired while it was read." : "Nothing is missing from this trace: all of it was read as it was written."}</p>
            {words.length > 0 && <ul>{words.map((word) => <li key={word}>{word}</li>)}</ul>}
            <div class="cards">
              {page.sections.toSorted((left, right) => first(left.key) - first(right.key)).map((section) => <Table key={section.key} table={section.table} />)}
            </div>
          </>
        );
      }}
    </Answer>
  );
}
