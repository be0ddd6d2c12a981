// Compare: what got faster or slower from one trace to another.

import { compared } from "../base/compared";
import type { Page, WaterfallData } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { Missing } from "../widgets/missing";
import { PairChoice } from "../widgets/pair_choice";
import { StepDots } from "../widgets/step_dots";
import { Table } from "../widgets/table";
import { TypicalSteps } from "../widgets/typical_steps";
import { Waterfall } from "../widgets/waterfall";
import type { ViewProperties } from "./view";

const WAYS = [
  ["overview", "Overview"],
  ["op", "Operators"],
  ["kernel", "Kernels"],
  ["function", "Functions"],
  ["module", "Modules"],
  ["shape", "Shapes"],
] as const;

/** What the step does is the verdict, where there are steps. */
function stepFirst(words: readonly string[]): string[] {
  const isStep = (text: string) => text.startsWith("A step");
  return [...words.filter(isStep), ...words.filter((text) => !isStep(text))];
}

export function Compare(props: ViewProperties) {
  const pair = compared(props.runs, props.run, props.parameters);
  const by = props.parameters["by"] ?? "overview";
  const loaded = useAnswer<Page>(pair === null ? null : `compare?before=${pair.before.id}&after=${pair.after.id}&by=${by}`);
  const between = useAnswer<WaterfallData>(pair === null || by !== "overview" ? null : `compare/waterfall?before=${pair.before.id}&after=${pair.after.id}`);
  if (pair === null) return <Empty record="hotspan view before.json.gz after.json.gz" />;
  const filter = props.parameters["filter"] ?? "";
  return (
    <>
      <div class="tabs" role="group" aria-label="Compared by">
        <PairChoice runs={props.runs} pair={pair} onPair={props.change} />
        {WAYS.map(([way, title]) => (
          <button key={way} type="button" aria-pressed={way === by} onClick={() => props.change({ by: way, filter: undefined })}>{title}</button>
        ))}
        <a href={props.to("flame", { order: "compared", before: String(pair.before.id), after: String(pair.after.id) })}>As a flame graph</a>
      </div>
      {[pair.before, pair.after].filter((run) => run.id !== props.run.id).map((run) => <Missing key={run.id} run={run} named href={props.to("quality", { run: String(run.id) })} />)}
      {by === "overview" && (
        <Answer loaded={between}>
          {(data) => (
            <>
              <div class="verdict">{stepFirst(data.words).map((text, place) => <p key={text} class={place === 0 ? "sentence" : ""}>{text}</p>)}</div>
              <Waterfall data={data} names={{ before: pair.before.file, after: pair.after.file }} />
              <StepDots before={data.steps_before} after={data.steps_after} />
              <TypicalSteps key={`${pair.before.id} ${pair.after.id}`} before={pair.before} after={pair.after} to={props.to} />
            </>
          )}
        </Answer>
      )}
      <Answer loaded={loaded}>
        {(page) => (
          <>
            {page.sections.length === 0 && <p class="empty">Neither trace has anything of this kind.</p>}
            {page.sections.map((section, place) =>
              place === 0 ? (
                <Table key={section.key} table={section.table} filter={filter} onFilter={(text) => props.change({ filter: text === "" ? undefined : text }, false)} />
              ) : (
                <Table key={section.key} table={section.table} />
              ),
            )}
          </>
        )}
      </Answer>
    </>
  );
}
