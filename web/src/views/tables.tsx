// Views that are tables: one or several, chosen by tabs where there are ways to group the same thing.

import type { Page } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { Table, type Sorting } from "../widgets/table";
import type { ViewProperties } from "./view";

interface Tab {
  name: string;
  title: string;
}

/** A view of the tables of these names; the first is shown first. */
export function tables(tabs: readonly [Tab, ...Tab[]]) {
  return function Tables(props: ViewProperties) {
    const tab = tabs.find((known) => known.name === props.parameters["by"]) ?? tabs[0];
    const loaded = useAnswer<Page>(`run/${props.run.id}/table/${tab.name}`);
    return (
      <>
        {tabs.length > 1 && (
          <nav class="tabs" aria-label="Grouped by">
            {tabs.map((known) => (
              <button key={known.name} type="button" aria-pressed={known === tab} onClick={() => props.change({ by: known.name, sort: undefined })}>
                {known.title}
              </button>
            ))}
          </nav>
        )}
        <Answer loaded={loaded}>
          {(page) => (page.sections.length === 0 ? <Empty record={page.record} /> : <Sections page={page} {...props} />)}
        </Answer>
      </>
    );
  };
}

/** The tables of a page. The first keeps its order and filter in the address. */
export function Sections(props: ViewProperties & { page: Page }) {
  const text = props.parameters["sort"] ?? "";
  const sorting: Sorting | null = text === "" ? null : { key: text.replace(/^-/, ""), down: text.startsWith("-") };
  return (
    <>
      {props.page.sections.map((section, place) =>
        place > 0 ? (
          <Table key={section.key} table={section.table} />
        ) : (
          <Table
            key={section.key}
            table={section.table}
            sorting={sorting}
            filter={props.parameters["filter"] ?? ""}
            onSort={(next) => props.change({ sort: `${next.down ? "-" : ""}${next.key}` }, false)}
            onFilter={(next) => props.change({ filter: next === "" ? undefined : next }, false)}
          />
        ),
      )}
    </>
  );
}
