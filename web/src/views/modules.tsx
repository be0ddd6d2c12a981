// Modules: the tree of nn.Module calls with the time of each.

import type { Page } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { TreeTable } from "../widgets/tree_table";
import type { ViewProperties } from "./view";

export function Modules(props: ViewProperties) {
  const loaded = useAnswer<Page>(`run/${props.run.id}/table/module_tree`);
  const onFilter = (text: string) => props.change({ filter: text === "" ? undefined : text }, false);
  return (
    <Answer loaded={loaded}>
      {(page) => (page.sections.length === 0 ? <Empty record={page.record} /> : <>{page.sections.map((section) => <TreeTable key={section.key} table={section.table} depth="depth" filter={props.parameters["filter"] ?? ""} onFilter={onFilter} />)}</>)}
    </Answer>
  );
}
