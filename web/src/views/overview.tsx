// Overview: what ran, where its time went, how steps went, how the GPU was used, what to change.

import type { AdviceData, Page } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { Figures } from "../widgets/figures";
import { Finding } from "../widgets/finding";
import { ShareBar } from "../widgets/share_bar";
import { StackedBars } from "../widgets/stacked_bars";
import { Table } from "../widgets/table";
import type { ViewProperties } from "./view";

const MOST_FINDINGS = 3;
/** What a device is judged by. */
const FIGURES = ["busy_share", "utilisation", "sm_efficiency", "occupancy", "tensor_cores"] as const;
/** The section whose parts add up to the wall time. */
const WALL_TIME = "Where the time went";

export function Overview(props: ViewProperties) {
  const run = `run/${props.run.id}`;
  const overview = useAnswer<Page>(`${run}/table/overview`);
  const steps = useAnswer<Page>(`${run}/table/steps`);
  const gpu = useAnswer<Page>(`${run}/table/gpu`);
  const advice = useAnswer<AdviceData>(`${run}/advice`);
  const devices = gpu.state === "ready" ? gpu.value.sections.find((section) => section.key === "devices") : undefined;
  return (
    <div class="cards">
      <Answer loaded={overview}>
        {(page) =>
          page.sections.length === 0 ? (
            <Empty record={page.record} />
          ) : (
            <>
              {page.sections.slice(0, 2).map((section) => (
                <div key={section.key}>
                  {section.key === WALL_TIME && <ShareBar table={section.table} />}
                  <Table table={section.table} />
                </div>
              ))}
              {devices?.table.rows.map((row) => (
                <Figures key={String(row[0])} table={devices.table} row={row} keys={FIGURES} title={`GPU ${String(row[0])} ${row[1] === null ? "" : String(row[1])}`} />
              ))}
              <section class="wide">
                <h2>Advice</h2>
                <Answer loaded={advice}>
                  {(value) => (
                    <>
                      {value.findings.length === 0 && <p class="quiet">No rule found anything to change.</p>}
                      {value.findings.slice(0, MOST_FINDINGS).map((finding) => (
                        <Finding key={finding.rule} finding={finding} to={props.to} />
                      ))}
                      {value.findings.length > MOST_FINDINGS && <a href={props.to("advice")}>All {value.findings.length} findings</a>}
                    </>
                  )}
                </Answer>
              </section>
              <Answer loaded={steps}>
                {(value) => (
                  <>
                    {value.sections.map((section) => (
                      <StackedBars key={section.key} table={section.table} onRow={(begin, end) => props.to("timeline", { from: String(begin), to: String(end) })} />
                    ))}
                  </>
                )}
              </Answer>
              {page.sections.slice(2).map((section) => (
                <Table key={section.key} table={section.table} />
              ))}
            </>
          )
        }
      </Answer>
    </div>
  );
}
