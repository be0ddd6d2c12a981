// One finding of the advisor: what is wrong, what to do, what it would gain, and the proof with links into the timeline.

import { duration, moment, percent, shown } from "../base/units";
import type { FindingData } from "../data/api";
import { CopyCode } from "./copy_code";
import { SourceLink } from "./source_link";

interface Properties {
  finding: FindingData;
  /** In short: without the proof, with a link to its place instead. */
  short?: boolean;
  to: (view: string, parameters?: Record<string, string>) => string;
}

/** Words of the advisor; what stands between backticks is code. */
function Words({ text }: { text: string }) {
  return <>{text.split("`").map((piece, place) => (place % 2 === 1 ? <code key={place}>{piece}</code> : piece))}</>;
}

/** The code of a fix: what stands between backticks. */
function codeOf(fix: string): string[] {
  return fix.split("`").filter((piece, place) => place % 2 === 1 && /[=(.]/.test(piece));
}

/** A gap fills this part of what is seen of it. */
const AROUND = 4;

/** Where in the timeline a row of the proof is: a span, the time that a device had nothing to do, or a moment. */
function targetOf(finding: FindingData, number: number, at: number, span: number): Record<string, string> {
  const row = finding.evidence.rows[number] ?? [];
  const gap = finding.gaps.find((known) => known.row === number);
  if (gap !== undefined) {
    const around = Math.round(((gap.end - gap.begin) * (AROUND - 1)) / 2);
    const [from, to, begin, end] = [gap.begin - around, gap.end + around, gap.begin, gap.end].map(String) as [string, string, string, string];
    return { from, to, begin, end, track: "device" };
  }
  return typeof row[span] === "number" ? { span: String(row[span]) } : { at: String(row[at] ?? 0) };
}

export function Finding({ finding, short = false, to }: Properties) {
  const { evidence } = finding;
  const at = evidence.columns.findIndex((column) => column.key === "at");
  const span = evidence.columns.findIndex((column) => column.key === "span");
  return (
    <article class="finding" id={`rule-${finding.rule}`}>
      <h2>{finding.title}</h2>
      {finding.gain !== null && (
        <p class="gain">
          <strong>up to {duration(finding.gain_per_step ?? finding.gain)}{finding.gain_per_step !== null && " per step"}</strong>
          {finding.gain_percent !== null && <span> {percent(finding.gain_percent)}</span>}
          {finding.gain_per_step !== null && <span class="quiet"> {duration(finding.gain)} in all</span>}
        </p>
      )}
      <p><Words text={finding.message} /></p>
      <p>
        <strong>Fix:</strong> <Words text={finding.fix} />
      </p>
      {codeOf(finding.fix).map((code) => <CopyCode key={code} code={code} />)}
      <p class="links">
        {finding.source !== null && <SourceLink place={finding.source} to={to} />}
        {short && evidence.rows[0] !== undefined && (at >= 0 || span >= 0) && <a href={to("timeline", targetOf(finding, 0, at, span))} aria-label={`Show in the timeline: ${finding.title}`}>Show in the timeline</a>}
        {short && <a href={to("advice", { rule: finding.rule })} aria-label={`Evidence: ${finding.title}`}>Evidence</a>}
        <span class="quiet">{finding.rule}, {finding.confidence} confidence</span>
      </p>
      {!short && evidence.rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={`Evidence of ${finding.rule}`}>
          <table>
            <thead>
              <tr>
                {evidence.columns.map((column) => <th key={column.key} class={column.numeric ? "number" : ""} title={column.help}>{column.title}</th>)}
              </tr>
            </thead>
            <tbody>
              {evidence.rows.map((row, number) => (
                <tr key={number}>
                  {row.map((cell, place) => {
                    const column = evidence.columns[place];
                    const text = column?.key === "at" && typeof cell === "number" ? moment(cell) : shown(cell, column?.unit ?? "");
                    const jumps = (place === at || place === span) && typeof cell === "number";
                    return (
                      <td key={place} class={column?.numeric === true ? "number" : ""}>
                        {jumps ? <a href={to("timeline", targetOf(finding, number, at, span))}>{place === span ? "show" : text}</a> : text}
                      </td>
                    );
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </article>
  );
}
