// Distributed: the traces of the run together; who computes, who waits for whom.

import type { Page } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

export function Ranks(props: ViewProperties) {
  const together = props.runs.filter((run) => run.run === props.run.run).map((run) => run.id);
  const loaded = useAnswer<Page>(`ranks?runs=${together.join(",")}`);
  if (together.length < 2) return <Empty record="hotspan view FOLDER    # with one trace for each rank of a job" />;
  return (
    <Answer loaded={loaded}>
      {(page) => (page.sections.length === 0 ? <Empty record={page.record} /> : <>{page.sections.map((section) => <Table key={section.key} table={section.table} />)}</>)}
    </Answer>
  );
}
