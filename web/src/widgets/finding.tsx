// One finding of the advisor: what is wrong, what to do, what it would gain, and the proof with links into the timeline.

import { duration, shown } from "../base/units";
import type { FindingData } from "../data/api";

interface Properties {
  finding: FindingData;
  to: (view: string, parameters?: Record<string, string>) => string;
}

export function Finding({ finding, to }: Properties) {
  const { evidence } = finding;
  const at = evidence.columns.findIndex((column) => column.key === "at");
  const span = evidence.columns.findIndex((column) => column.key === "span");
  return (
    <article class="finding">
      <h2>
        {finding.title} <span class="quiet">{finding.rule}, {finding.confidence} confidence</span>
      </h2>
      <p>{finding.message}</p>
      <p>
        <strong>Fix:</strong> {finding.fix}
      </p>
      {finding.gain !== null && (
        <p>
          <strong>Gain:</strong> up to {duration(finding.gain)}
          {finding.gain_percent !== null && ` (${finding.gain_percent.toFixed(1)} %)`}
        </p>
      )}
      {finding.source !== null && <p><code>{finding.source}</code></p>}
      {evidence.rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={`Evidence of ${finding.rule}`}>
          <table>
            <thead>
              <tr>
                {evidence.columns.map((column) => <th key={column.key} class={column.numeric ? "number" : ""}>{column.title}</th>)}
              </tr>
            </thead>
            <tbody>
              {evidence.rows.map((row, number) => (
                <tr key={number}>
                  {row.map((cell, place) => {
                    const column = evidence.columns[place];
                    const text = shown(cell, column?.unit ?? "");
                    const jumps = (place === at || place === span) && typeof cell === "number";
                    const target: Record<string, string> = typeof row[span] === "number" ? { span: String(row[span]) } : { at: String(row[at] ?? 0) };
                    return (
                      <td key={place} class={column?.numeric === true ? "number" : ""}>
                        {jumps ? <a href={to("timeline", target)}>{text}</a> : text}
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
