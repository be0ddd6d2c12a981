// Memory: curves over time, and who held the peak.

import type { Curve, Page } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { AreaChart } from "../widgets/area_chart";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

export function Memory(props: ViewProperties) {
  const curves = useAnswer<Curve[]>(`run/${props.run.id}/curves`);
  const page = useAnswer<Page>(`run/${props.run.id}/table/memory`);
  return (
    <>
      <Answer loaded={curves}>{(value) => <>{value.map((curve) => <AreaChart key={curve.title} curve={curve} />)}</>}</Answer>
      <Answer loaded={page}>
        {(value) =>
          value.sections.length === 0 ? <Empty record={value.record} /> : <>{value.sections.map((section) => <Table key={section.key} table={section.table} />)}</>
        }
      </Answer>
    </>
  );
}
