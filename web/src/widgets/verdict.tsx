// The verdict: one sentence that says where the time goes, and a typical step on the host and on the devices, drawn to one scale.

import { namedPart } from "../base/colour";
import { duration, percent } from "../base/units";
import type { BarData, BarPart, VerdictData } from "../data/api";
import { SourceLink } from "./source_link";

type To = (view: string, parameters?: Record<string, string>) => string;

/** Parts below this share of a step are not worth a word in the legend. */
const SEEN = 0.5;

function words(part: BarPart): string {
  return `${part.idle ? `Idle: ${part.title}` : part.title}: ${duration(part.time)}, ${percent(part.share)} of the step`;
}

/** A sentence in which the line it names is a link to the source. */
function Sentence({ verdict, to }: { verdict: VerdictData; to: To }) {
  const name = verdict.source?.replace(/^.*\//, "") ?? "";
  const at = name === "" ? -1 : verdict.sentence.lastIndexOf(name);
  if (verdict.source === null || at < 0) return <>{verdict.sentence}</>;
  return <>{verdict.sentence.slice(0, at)}<SourceLink place={verdict.source} to={to} />{verdict.sentence.slice(at + name.length)}</>;
}

export function Verdict({ verdict, to }: { verdict: VerdictData; to: To }) {
  if (verdict.sentence === "") return null;
  const longest = Math.max(1, ...verdict.bars.map((bar) => bar.time));
  const known = new Map(verdict.bars.flatMap((bar) => bar.parts).filter((part) => part.share >= SEEN).map((part) => [`${part.title} ${part.idle}`, part]));
  const timeline = to("timeline", { from: String(verdict.begin), to: String(verdict.end) });
  return (
    <section class="verdict" aria-label="Verdict">
      <p class="sentence"><Sentence verdict={verdict} to={to} /> {verdict.view !== "overview" && <a class="why" href={to(verdict.view)}>Why</a>}</p>
      {verdict.bars.length > 0 && (
        <>
          <h2>{verdict.step === null ? "The recording" : "A typical step"} <span class="quiet">{verdict.step === null ? duration(verdict.end - verdict.begin) : <>number {verdict.step}, {duration(verdict.end - verdict.begin)}</>} <a href={timeline}>show in the timeline</a></span></h2>
          <div class="step">
            {verdict.bars.map((bar) => <Bar key={bar.title} bar={bar} longest={longest} />)}
          </div>
          <ul class="legend">
            {[...known.values()].map((part) => (
              <li key={`${part.title} ${part.idle}`}><i class={part.idle ? "square idle" : "square"} style={{ "--part": namedPart(part.key, 0) }} />{part.idle ? `Idle: ${part.title}` : part.title}</li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function Bar({ bar, longest }: { bar: BarData; longest: number }) {
  return (
    <>
      <span class="who">{bar.title}</span>
      <span class="track" role="img" aria-label={`${bar.title}: ${bar.parts.map(words).join("; ")}`}>
        {bar.parts.map((part) => {
          const width = (part.time / longest) * 100;
          return (
            <span key={`${part.key} ${part.idle}`} class={part.idle ? "part idle" : "part"} data-key={part.key} style={{ width: `${width}%`, "--part": namedPart(part.key, 0) }} title={words(part)}>
              <span>{percent(part.share)}</span>
            </span>
          );
        })}
      </span>
      <span class="length">{duration(bar.time)}</span>
    </>
  );
}
