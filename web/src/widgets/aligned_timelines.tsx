// Timelines of several traces, one below the other on one scale: what is moved in one moves in all. A click on a span shows it in its own timeline.

import { useEffect, useRef, useState } from "preact/hooks";
import { duration } from "../base/units";
import type { TimelineInfo } from "../data/api";
import { knowsSpan, useAnswer } from "../data/server";
import { Answer } from "./answer";
import type { Found, Range } from "./timeline_canvas";
import { useKeys } from "./timeline_keys";
import { arrange, foldedAtFirst } from "./timeline_layout";
import { listen } from "./timeline_pointer";
import { Stage } from "./timeline_stage";
import { Tooltip } from "./tooltip";

export interface Aligned {
  run: number;
  title: string;
  /** The moment of the trace that stands where the others have theirs. */
  zero: number;
}

interface Properties {
  rows: readonly Aligned[];
  /** What is seen at first, from the common moment. */
  seen: Range;
  /** How high each of them is, in pixels. */
  height: number;
  to: (view: string, parameters: Record<string, string>) => string;
}

/** Differences of what is seen that nobody sees. */
const SAME = 0.5;

/** Moves all stages together. */
class Together {
  readonly stages = new Map<number, { stage: Stage; zero: number }>();
  /** How far from the common moment any of them has something. */
  private reach = 1;

  constructor(
    public seen: Range,
    private readonly told: (seen: Range) => void,
  ) {}

  add(run: number, stage: Stage, zero: number, info: TimelineInfo): void {
    this.stages.set(run, { stage, zero });
    this.reach = Math.max(this.reach, zero - info.begin, info.end - zero, -this.seen.from, this.seen.to);
    // The others may be longer: one can move to wherever one of them has something.
    for (const known of this.stages.values()) known.stage.bounds = { from: known.zero - this.reach, to: known.zero + this.reach };
    stage.show({ from: zero + this.seen.from, to: zero + this.seen.to });
  }

  /** One of them shows this now. */
  follow(range: Range, zero: number): void {
    const next = { from: range.from - zero, to: range.to - zero };
    if (Math.abs(next.from - this.seen.from) < SAME && Math.abs(next.to - this.seen.to) < SAME) return;
    this.show(next);
  }

  show(next: Range): void {
    this.seen = next;
    for (const { stage, zero } of this.stages.values()) stage.show({ from: next.from + zero, to: next.to + zero });
    this.told(next);
  }

  zoom(factor: number): void {
    const centre = [...this.stages.values()].map(({ stage }) => stage.pointer).find((pointer) => pointer !== null) ?? 0.5;
    const { from, to } = this.seen;
    const point = from + (to - from) * centre;
    this.show({ from: point - (point - from) * factor, to: point + (to - point) * factor });
  }

  move(share: number): void {
    const by = (this.seen.to - this.seen.from) * share;
    this.show({ from: this.seen.from + by, to: this.seen.to + by });
  }
}

export function AlignedTimelines(props: Properties) {
  const [seen, setSeen] = useState(props.seen);
  const together = useRef<Together | null>(null);
  together.current ??= new Together(props.seen, setSeen);
  const all = together.current;
  const [zoomIn, zoomOut, reset] = [() => all.zoom(0.7), () => all.zoom(1 / 0.7), () => all.show(props.seen)];
  useKeys({ w: zoomIn, s: zoomOut, a: () => all.move(-0.15), d: () => all.move(0.15), "0": reset });
  return (
    <div class="aligned" data-from={Math.round(seen.from)} data-to={Math.round(seen.to)}>
      <div class="tabs">
        <button type="button" onClick={zoomIn} aria-label="Zoom in">+</button>
        <button type="button" onClick={zoomOut} aria-label="Zoom out">−</button>
        <button type="button" onClick={() => all.move(-0.15)} aria-label="Pan left">‹</button>
        <button type="button" onClick={() => all.move(0.15)} aria-label="Pan right">›</button>
        <button type="button" onClick={reset}>Reset</button>
        <span class="quiet">{duration(Math.round(seen.to - seen.from))} shown</span>
      </div>
      {props.rows.map((row) => <One key={row.run} row={row} together={all} height={props.height} to={props.to} />)}
    </div>
  );
}

type OneProperties = { row: Aligned; together: Together; height: number; to: Properties["to"] };

function One(props: OneProperties) {
  const loaded = useAnswer<TimelineInfo>(`run/${props.row.run}/timeline`);
  return (
    <section aria-label={props.row.title}>
      <h3>{props.row.title}</h3>
      <Answer loaded={loaded}>{(info) => <Tracks {...props} info={info} />}</Answer>
    </section>
  );
}

function Tracks({ row, together, height, to, info }: OneProperties & { info: TimelineInfo }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [hover, setHover] = useState<{ found: Found; x: number; y: number } | null>(null);
  const layout = arrange(info.tracks, { folded: foldedAtFirst(info.tracks), closed: new Set(), pinned: [] });
  useEffect(() => {
    if (canvas.current === null || scroller.current === null) return;
    const { seen } = together;
    const stage = new Stage(canvas.current, scroller.current, info, row.run, layout, { from: row.zero + seen.from, to: row.zero + seen.to }, () => undefined, setProblem);
    stage.origin = row.zero;
    together.add(row.run, stage, row.zero, info);
    const follow: Stage["follower"] = {
      follow: ({ seen: now }) => {
        // For tests: what is drawn, from the common moment.
        stage.canvas.dataset["seen"] = `${Math.round(now.from - row.zero)} ${Math.round(now.to - row.zero)}`;
        together.follow(now, row.zero);
      },
      close: () => undefined,
    };
    stage.follower = follow;
    const click = (x: number, y: number) => {
      const found = stage.at(x, y);
      if (found === null || found.value !== null) return;
      const around = Math.max(found.end - found.begin, 1000);
      if (found.count > 1) stage.show({ from: found.begin - around, to: found.end + around });
      else if (found.span >= 0 && knowsSpan(row.run, found.span)) location.hash = to("timeline", { run: String(row.run), span: String(found.span), at: String(Math.round(found.begin)) });
    };
    const stop = listen(stage, scroller.current, {
      select: () => undefined,
      selects: () => false,
      hover: (point) => {
        const found = point === null ? null : stage.at(point.x, point.y);
        setHover(found === null || point === null ? null : { found, ...point });
      },
      click,
    });
    return () => {
      stop();
      together.stages.delete(row.run);
      stage.close();
    };
  }, [info, row.run, row.zero]);
  const drawn = `${Math.min(layout.height, height)}px`;
  return (
    <div class="canvas">
      {problem !== null && <p class="problem" role="alert">{problem}</p>}
      <div ref={scroller} class="stage" tabIndex={0} role="region" aria-label={`Tracks of ${row.title}`} style={{ height: drawn }}>
        <div style={{ height: `${layout.height}px` }}>
          <canvas ref={canvas} role="img" aria-label={`Timeline of ${row.title}`} style={{ height: drawn }} />
        </div>
      </div>
      {hover !== null && (
        <Tooltip of={canvas.current} x={hover.x} y={hover.y}>
          {hover.found.count > 1 ? `${hover.found.count} spans` : hover.found.name}{hover.found.value === null && `, ${duration(hover.found.end - hover.found.begin)}`}
        </Tooltip>
      )}
    </div>
  );
}
