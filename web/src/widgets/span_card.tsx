// Everything about a span.

import { duration } from "../base/units";
import type { Link, SpanDetails } from "../data/api";

export function SpanCard(props: { details: SpanDetails; onSpan: (link: Link) => void }) {
  const { details } = props;
  return (
    <section class="table" aria-label="Span">
      <h2>{details.name}</h2>
      <dl>
        <dt>Time</dt>
        <dd>{duration(details.duration)}</dd>
        <dt>Begin</dt>
        <dd>{duration(details.begin)}</dd>
        <dt>Kind</dt>
        <dd>{details.category}</dd>
        <dt>On</dt>
        <dd>{details.process}, {details.track}</dd>
        {details.args.map((arg) => [<dt key={`${arg.key} key`}>{arg.key}</dt>, <dd key={arg.key}>{arg.value}</dd>])}
        {details.linked.map((link) => [
          <dt key={`${link.span} relation`}>{link.relation}</dt>,
          <dd key={link.span}><button type="button" onClick={() => props.onSpan(link)}>{link.name}</button></dd>,
        ])}
      </dl>
    </section>
  );
}
