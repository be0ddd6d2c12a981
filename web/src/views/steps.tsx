// Steps: a bar for each, and its numbers.

import type { Page } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { StackedBars } from "../widgets/stacked_bars";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

export function Steps(props: ViewProperties) {
  const loaded = useAnswer<Page>(`run/${props.run.id}/table/steps`);
  return (
    <Answer loaded={loaded}>
      {(page) =>
        page.sections.length === 0 ? (
          <Empty record={page.record} />
        ) : (
          <>
            {page.sections.map((section) => (
              <div key={section.key}>
                <StackedBars table={section.table} onRow={(begin, end) => props.to("timeline", { from: String(begin), to: String(end) })} />
                <Table table={section.table} />
              </div>
            ))}
          </>
        )
      }
    </Answer>
  );
}
