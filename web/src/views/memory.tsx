// Memory: curves over time with a range to select, who held the peak, and what was allocated in the range.

import { selected } from "../base/ranges";
import type { Curve, Page } from "../data/api";
import { isStatic, useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { AreaChart } from "../widgets/area_chart";
import { ShareTable } from "../widgets/share_table";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

export function Memory(props: ViewProperties) {
  const range = selected(props.parameters);
  const curves = useAnswer<Curve[]>(`run/${props.run.id}/curves`);
  const cut = range === null || isStatic ? "" : `?from=${Math.round(range.begin)}&to=${Math.round(range.end)}`;
  const page = useAnswer<Page>(`run/${props.run.id}/memory${cut}`);
  const names = curves.state === "ready" ? [...new Set(curves.value.flatMap((curve) => curve.lines.map((line) => line.title)))] : [];
  const select = (begin: number, end: number) => props.change({ begin: String(Math.round(begin)), end: String(Math.round(end)) }, false);
  return (
    <>
      {isStatic && range !== null && <p class="quiet" role="status">A page to share has the tables of the whole time only.</p>}
      <Answer loaded={curves}>{(value) => <>{value.map((curve) => <AreaChart key={curve.title} curve={curve} names={names} range={range} onRange={select} />)}</>}</Answer>
      <Answer loaded={page}>
        {(value) =>
          value.sections.length === 0 ? (
            <Empty record={value.record} />
          ) : (
            <>
              {value.sections.map((section) => (section.key === "peak" ? <ShareTable key={section.key} table={section.table} names={names} /> : <Table key={section.key} table={section.table} />))}
            </>
          )
        }
      </Answer>
    </>
  );
}
