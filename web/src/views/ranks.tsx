// Distributed: the traces of the run together; who computes, who waits for whom.

import type { Page } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { StackedBars } from "../widgets/stacked_bars";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

export function Ranks(props: ViewProperties) {
  const together = props.runs.filter((run) => run.run === props.run.run).map((run) => run.id);
  const loaded = useAnswer<Page>(together.length < 2 ? null : `ranks?runs=${together.join(",")}`);
  if (together.length < 2) return <Empty record="hotspan view FOLDER    # with one trace for each rank of a job" />;
  return (
    <Answer loaded={loaded}>
      {(page) => {
        const ranks = page.sections.find((section) => section.key === "ranks")?.table;
        return (
          <>
            {page.sections.length === 0 && <Empty record={page.record} />}
            {ranks !== undefined && (
              <div class="cards">
                <StackedBars table={ranks} title="Time of each rank" row="Rank" parts={["compute", "communication", "copy", "idle"]} />
                <StackedBars table={ranks} title="Collectives: waiting for others, and transfer" row="Rank" parts={["wait", "transfer"]} />
              </div>
            )}
            {page.sections.map((section) => <Table key={section.key} table={section.table} />)}
          </>
        );
      }}
    </Answer>
  );
}
