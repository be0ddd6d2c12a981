// Everything about a span: times, inputs, what it is inside of, what it belongs to.

import { doorway } from "../base/doors";
import { duration, moment } from "../base/units";
import type { Caller, Link, SpanDetails } from "../data/api";
import { isStatic, knowsSpan, knowsSpans } from "../data/server";

type To = (view: string, parameters: Record<string, string>) => string;

interface Properties {
  /** The trace of the span. */
  run: number;
  /** The address of another view. */
  to: To;
  details: SpanDetails;
  onLink: (link: Link) => void;
  onCaller: (caller: Caller) => void;
  /** To the previous or next span of the same name. */
  onSame: (step: 1 | -1) => void;
  onClose: () => void;
}

/** Shapes and the like first: they are what one looks for. */
const FIRST = ["Input Dims", "Input type", "Concrete Inputs", "grid", "block"];

export function SpanCard(props: Properties) {
  const { details } = props;
  const rank = (key: string) => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);
  const args = details.args.toSorted((left, right) => rank(left.key) - rank(right.key));
  return (
    <section class="table" aria-label="Span">
      <header>
        <h2>{details.name}</h2>
        {details.door !== "" && !isStatic && <a href={doorway(details.door)} data-door={details.door}>{details.category === "idle" ? "About this gap" : "All calls"}</a>}
        {details.category !== "idle" && knowsSpans(props.run) && (
          <>
            <button type="button" onClick={() => props.onSame(-1)} aria-label="Previous of this name" title="Previous of this name (,)">‹</button>
            <button type="button" onClick={() => props.onSame(1)} aria-label="Next of this name" title="Next of this name (.)">›</button>
          </>
        )}
        <button type="button" onClick={props.onClose} aria-label="Close">✕</button>
      </header>
      <dl>
        <dt>Time</dt>
        <dd data-duration={details.duration}>{duration(details.duration)}</dd>
        <dt>Begin</dt>
        <dd>{moment(details.begin)}</dd>
        <dt>Kind</dt>
        <dd>{details.category}</dd>
        <dt>On</dt>
        <dd>{details.process}, {details.track}</dd>
        {details.linked.map((link) => [
          <dt key={`${link.relation} ${link.span} relation`}>{link.relation}</dt>,
          <dd key={`${link.relation} ${link.span}`}>
            {knowsSpan(props.run, link.span) ? <button type="button" data-relation={link.relation} onClick={() => props.onLink(link)}>{link.name} <span class="quiet">{duration(link.end - link.begin)}</span></button> : <>{link.name} <span class="quiet">{duration(link.end - link.begin)}</span></>}
          </dd>,
        ])}
        {args.map((arg) => [<dt key={`${arg.key} key`}>{arg.key}</dt>, <dd key={arg.key}>{arg.value}</dd>])}
      </dl>
      {details.stack.length > 0 && <Callers run={props.run} title="Inside" callers={details.stack} onCaller={props.onCaller} to={props.to} />}
      {details.sampled.length > 0 && <Callers run={props.run} title="Sampled stack" callers={details.sampled} onCaller={props.onCaller} to={props.to} />}
    </section>
  );
}

/** A file and a line; those that say where the file is lead to its source. */
function Place({ place, to }: { place: string; to: To }) {
  const [, file, line] = /^(\/.*\.py):(\d+)$/.exec(place) ?? [];
  if (file === undefined || line === undefined) return <code>{place}</code>;
  return <a href={to("source", { file, line })}><code>{place}</code></a>;
}

/** The innermost first, as one reads a stack to find who is to blame. */
function Callers(props: { run: number; title: string; callers: readonly Caller[]; onCaller: (caller: Caller) => void; to: To }) {
  return (
    <>
      <h3>{props.title}</h3>
      <ol class="stack">
        {props.callers.toReversed().map((caller, place) => (
          <li key={place}>
            {caller.span < 0 || !knowsSpan(props.run, caller.span) ? caller.name : <button type="button" onClick={() => props.onCaller(caller)}>{caller.name}</button>}
            {" "}
            <Place place={caller.place} to={props.to} />
          </li>
        ))}
      </ol>
    </>
  );
}
