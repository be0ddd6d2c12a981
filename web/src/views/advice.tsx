// Advice: all findings with their proof, and what could not be looked for.

import { useEffect } from "preact/hooks";
import type { AdviceData } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer } from "../widgets/answer";
import { Finding } from "../widgets/finding";
import type { ViewProperties } from "./view";

export function Advice(props: ViewProperties) {
  const loaded = useAnswer<AdviceData>(`run/${props.run.id}/advice`);
  const rule = props.parameters["rule"];
  useEffect(() => {
    if (rule !== undefined && loaded.state === "ready") document.getElementById(`rule-${rule}`)?.scrollIntoView({ block: "start" });
  }, [rule, loaded.state]);
  return (
    <Answer loaded={loaded}>
      {(advice) => (
        <>
          {advice.about !== null && <p class="quiet">{advice.about}</p>}
          {advice.findings.length === 0 && <p class="empty">No rule found anything to change.</p>}
          {advice.findings.map((finding) => (
            <Finding key={finding.rule} finding={finding} to={props.to} />
          ))}
          {advice.skipped.length > 0 && (
            <section>
              <h2>Not checked</h2>
              <ul>
                {advice.skipped.map((skipped) => (
                  <li key={skipped.need}>
                    The trace has no {skipped.need}: {skipped.record}. <span class="quiet">({skipped.rules.join(", ")})</span>
                  </li>
                ))}
              </ul>
            </section>
          )}
          <p class="quiet">Gains are a share of {advice.basis}.</p>
        </>
      )}
    </Answer>
  );
}
