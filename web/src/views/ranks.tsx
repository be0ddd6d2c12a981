// Distributed: the ranks of the job together, one recording of each worker; who computes, who waits for whom.

import type { Page } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { StackedBars } from "../widgets/stacked_bars";
import { RanksOnAClock } from "../widgets/ranks_on_a_clock";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

export function Ranks(props: ViewProperties) {
  const loaded = useAnswer<Page>(`ranks?run=${props.run.id}`);
  return (
    <Answer loaded={loaded}>
      {(page) => {
        const ranks = page.sections.find((section) => section.key === "ranks")?.table;
        return (
          <>
            {page.sections.length === 0 && <Empty record={page.record} />}
            {page.words.length > 0 && <div class="verdict">{page.words.map((text) => <p key={text} class="sentence">{text}</p>)}</div>}
            {ranks !== undefined && (
              <div class="cards">
                <StackedBars table={ranks} title="Time of each rank" row="Rank" parts={["compute", "communication", "copy", "idle"]} />
                <StackedBars table={ranks} title="Collectives: waiting for others, and transfer" row="Rank" parts={["wait", "transfer"]} />
              </div>
            )}
            {page.sections.map((section) => <Table key={section.key} table={section.table} />)}
            {page.sections.length > 0 && <RanksOnAClock key={props.run.id} run={props.run.id} to={props.to} />}
          </>
        );
      }}
    </Answer>
  );
}
