// GPU: how much of each device was used, why it was idle, and what its kernels reach of what it could do.

import type { Page, Section } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { ShareTable } from "../widgets/share_table";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

/** Sections whose parts add up to a whole. */
const WHOLES = ["time", "idle"];

/** Those two stand beside each other; all else has many columns. */
function Shown({ section }: { section: Section }) {
  if (WHOLES.includes(section.key)) return <ShareTable table={section.table} />;
  return <div class="all"><Table table={section.table} /></div>;
}

export function Gpu(props: ViewProperties) {
  const loaded = useAnswer<Page>(`run/${props.run.id}/table/gpu`);
  return (
    <Answer loaded={loaded}>
      {(page) =>
        page.sections.length === 0 ? (
          <Empty record={page.record} />
        ) : (
          <div class="cards">
            {page.sections.map((section) => <Shown key={section.key} section={section} />)}
          </div>
        )
      }
    </Answer>
  );
}
