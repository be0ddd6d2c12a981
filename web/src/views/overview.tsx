// Overview: the verdict, a typical step, what to change; then what ran, where its time went, how steps went, how the GPU was used.

import type { AdviceData, Page, VerdictData } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { DeviceFigures } from "../widgets/figures";
import { Finding } from "../widgets/finding";
import { ShareTable } from "../widgets/share_table";
import { StackedBars } from "../widgets/stacked_bars";
import { Table } from "../widgets/table";
import { Verdict } from "../widgets/verdict";
import type { ViewProperties } from "./view";

const MOST_FINDINGS = 3;
/** The section whose parts add up to the wall time. */
const WALL_TIME = "Where the time went";
/** What stands first among the tables, in this order. */
const FIRST = [WALL_TIME, "Program"];

export function Overview(props: ViewProperties) {
  const run = `run/${props.run.id}`;
  const verdict = useAnswer<VerdictData>(`${run}/verdict`);
  const overview = useAnswer<Page>(`${run}/table/overview`);
  const steps = useAnswer<Page>(`${run}/table/steps`);
  const gpu = useAnswer<Page>(`${run}/table/gpu`);
  const advice = useAnswer<AdviceData>(`${run}/advice`);
  const devices = gpu.state === "ready" ? gpu.value.sections.find((section) => section.key === "devices") : undefined;
  return (
    <>
      <Answer loaded={verdict}>{(value) => <Verdict verdict={value} to={props.to} />}</Answer>
      <Answer loaded={advice}>
        {(value) =>
          value.findings.length > 0 && (
            <section aria-label="What to change">
              <h2 class="lead">What to change <a class="quiet" href={props.to("advice")}>{value.findings.length > MOST_FINDINGS ? `all ${value.findings.length} findings` : "with the evidence"}</a></h2>
              <div class="findings">
                {value.findings.slice(0, MOST_FINDINGS).map((finding) => <Finding key={finding.rule} finding={finding} short to={props.to} />)}
              </div>
            </section>
          )
        }
      </Answer>
      <div class="cards">
        <Answer loaded={overview}>
          {(page) => {
            if (page.sections.length === 0) return <Empty record={page.record} />;
            const first = FIRST.flatMap((key) => page.sections.filter((section) => section.key === key));
            return (
              <>
                {first.map((section) => (section.key === WALL_TIME ? <ShareTable key={section.key} table={section.table} /> : <Table key={section.key} table={section.table} />))}
                {devices !== undefined && <DeviceFigures table={devices.table} />}
                <Answer loaded={steps}>
                  {(value) => (
                    <>
                      {value.sections.filter((section) => section.table.rows.length > 1).map((section) => (
                        <StackedBars key={section.key} table={section.table} onRow={(begin, end) => props.to("timeline", { from: String(begin), to: String(end) })} />
                      ))}
                    </>
                  )}
                </Answer>
                {page.sections.filter((section) => !first.includes(section)).map((section) => (
                  <Table key={section.key} table={section.table} />
                ))}
              </>
            );
          }}
        </Answer>
      </div>
    </>
  );
}
