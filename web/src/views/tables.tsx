// Views that are tables: one or several, chosen by tabs where there are ways to group the same thing.

import type { Cell, Page } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { MyCode, ofMyCode } from "../widgets/my_code";
import { filtered, Table, type Sorting } from "../widgets/table";
import { TopChart } from "../widgets/top_chart";
import type { ViewProperties } from "./view";

interface Tab {
  name: string;
  title: string;
}

interface Options {
  /** Draw the rows with most of the column that the table is sorted by. */
  chart?: boolean;
  /** The columns that name a bar of it. */
  names?: readonly string[];
  /** Rows have a file and a line: a click shows the source. */
  source?: boolean;
}

const ROWS = 10;

/** A view of the tables of these names; the first is shown first. */
export function tables(tabs: readonly [Tab, ...Tab[]], options: Options = {}) {
  return function Tables(props: ViewProperties) {
    const tab = tabs.find((known) => known.name === props.parameters["by"]) ?? tabs[0];
    const call = `run/${props.run.id}/table/${tab.name}`;
    const loaded = useAnswer<Page>(options.source === true ? ofMyCode(call, props.parameters) : call);
    return (
      <>
        {tabs.length > 1 && (
          <div class="tabs" role="group" aria-label="Grouped by">
            {tabs.map((known) => (
              <button key={known.name} type="button" aria-pressed={known === tab} onClick={() => props.change({ by: known.name, sort: undefined })}>
                {known.title}
              </button>
            ))}
            {options.source === true && <MyCode {...props} help="Leave out libraries and built-in functions" />}
          </div>
        )}
        <Answer loaded={loaded}>
          {(page) => (page.sections.length === 0 ? <Empty record={page.record} /> : <Sections page={page} {...props} {...options} />)}
        </Answer>
      </>
    );
  };
}

/** The tables of a page. The first keeps its order and filter in the address. */
function Sections(props: ViewProperties & Options & { page: Page }) {
  const text = props.parameters["sort"] ?? "";
  const sorting: Sorting | null = text === "" ? null : { key: text.replace(/^-/, ""), down: text.startsWith("-") };
  const first = props.page.sections[0];
  const [file, line] = ["file", "line"].map((key) => first?.table.columns.findIndex((column) => column.key === key) ?? -1);
  const toSource = (row: readonly Cell[]) => {
    const name = String(row[file ?? -1] ?? "");
    if (name.endsWith(".py")) location.hash = props.to("source", { file: name, line: String(row[line ?? -1] ?? 1) });
  };
  return (
    <>
      {props.chart === true && first !== undefined && (
        <TopChart table={first.table} rows={filtered(first.table, props.parameters["filter"] ?? "")} column={sorting?.key} names={props.names ?? []} count={Number(props.parameters["top"] ?? ROWS)} onCount={(count) => props.change({ top: String(count) }, false)} />
      )}
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
            {...(props.source === true ? { onRow: toSource } : {})}
          />
        ),
      )}
    </>
  );
}
