// Flame graph: the call tree, left heavy. A click makes a call fill the width; a search marks calls and adds up their time.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { heatColour, prefersDark } from "../base/colour";
import { duration } from "../base/units";
import type { FlameData } from "../data/api";
import { useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { fitted, sheet } from "../widgets/canvas";
import type { ViewProperties } from "./view";

const ROW = 18;

export function Flame(props: ViewProperties) {
  const loaded = useAnswer<FlameData>(`run/${props.run.id}/flame`);
  return <Answer loaded={loaded}>{(data) => (data.parent.length === 0 ? <Empty record={data.record} /> : <Graph {...props} data={data} />)}</Answer>;
}

interface Shape {
  left: Float64Array;
  depth: Uint16Array;
  deepest: number;
}

/** Where each node stands: children side by side from where their parent begins. */
function shape(data: FlameData): Shape {
  const count = data.parent.length;
  const [left, depth, used] = [new Float64Array(count), new Uint16Array(count), new Float64Array(count)];
  let [root, deepest] = [0, 0];
  for (let node = 0; node < count; node++) {
    const parent = data.parent[node] ?? -1;
    const time = data.total_time[node] ?? 0;
    if (parent < 0) {
      left[node] = root;
      root += time;
    } else {
      left[node] = (left[parent] ?? 0) + (used[parent] ?? 0);
      used[parent] = (used[parent] ?? 0) + time;
      depth[node] = (depth[parent] ?? 0) + 1;
      deepest = Math.max(deepest, depth[node] ?? 0);
    }
  }
  return { left, depth, deepest };
}

function Graph(props: ViewProperties & { data: FlameData }) {
  const { data } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState<{ node: number; x: number; y: number } | null>(null);
  const drawn = useMemo(() => shape(data), [data]);
  const text = props.parameters["search"] ?? "";
  const wanted = text.toLowerCase();
  const focus = Math.min(data.parent.length - 1, Number(props.parameters["node"] ?? -1));
  const matches = (node: number) => {
    const place = data.places[data.place[node] ?? 0];
    return place !== undefined && wanted !== "" && `${place.name} ${place.file}`.toLowerCase().includes(wanted);
  };
  const [from, length] = focus >= 0 ? [drawn.left[focus] ?? 0, data.total_time[focus] ?? 1] : [0, Math.max(1, data.total)];
  // Time below a call that matched is not counted again.
  const found = useMemo(() => {
    let sum = 0;
    const inside = new Uint8Array(data.parent.length);
    for (let node = 0; node < data.parent.length; node++) {
      const parent = data.parent[node] ?? -1;
      if (parent >= 0 && inside[parent] === 1) inside[node] = 1;
      else if (matches(node)) {
        inside[node] = 1;
        sum += data.total_time[node] ?? 0;
      }
    }
    return sum;
  }, [data, wanted]);

  useEffect(() => {
    const redraw = () => {
      const paper = canvas.current === null ? null : sheet(canvas.current, (drawn.deepest + 1) * ROW);
      if (paper === null) return;
      const { context, width } = paper;
      const dark = prefersDark();
      context.font = "11px ui-monospace, monospace";
      context.textBaseline = "middle";
      for (let node = 0; node < data.parent.length; node++) {
        const left = (((drawn.left[node] ?? 0) - from) / length) * width;
        const wide = ((data.total_time[node] ?? 0) / length) * width;
        if (wide < 0.4 || left + wide < 0 || left > width) continue;
        const [begin, end] = [Math.max(0, left), Math.min(width, left + wide)];
        const name = data.places[data.place[node] ?? 0]?.name ?? "";
        context.globalAlpha = wanted !== "" && !matches(node) ? 0.35 : 1;
        context.fillStyle = heatColour(name, dark);
        context.fillRect(begin, (drawn.depth[node] ?? 0) * ROW, Math.max(0.5, end - begin - 0.5), ROW - 1);
        context.fillStyle = dark ? "#fff" : "#1b1f27";
        if (end - begin > 24) context.fillText(fitted(name, end - begin), begin + 3, (drawn.depth[node] ?? 0) * ROW + ROW / 2);
      }
      context.globalAlpha = 1;
    };
    redraw();
    addEventListener("resize", redraw);
    return () => removeEventListener("resize", redraw);
  }, [drawn, from, length, wanted]);

  const nodeAt = (event: MouseEvent): { node: number; x: number; y: number } | null => {
    const element = canvas.current;
    if (element === null) return null;
    const box = element.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const time = from + (x / box.width) * length;
    const row = Math.floor(y / ROW);
    for (let node = 0; node < data.parent.length; node++) {
      const left = drawn.left[node] ?? 0;
      if (drawn.depth[node] === row && time >= left && time < left + (data.total_time[node] ?? 0)) return { node, x, y };
    }
    return null;
  };
  const place = hover === null ? undefined : data.places[data.place[hover.node] ?? 0];
  const share = (time: number) => `${((time / Math.max(1, data.total)) * 100).toFixed(2)} %`;
  return (
    <>
      <div class="tabs">
        <input type="search" placeholder="Search functions" aria-label="Search functions" value={text} onInput={(event) => props.change({ search: event.currentTarget.value === "" ? undefined : event.currentTarget.value }, false)} />
        {wanted !== "" && <span role="status">{duration(found)} ({share(found)}) match</span>}
        <button type="button" disabled={focus < 0} onClick={() => props.change({ node: undefined })}>All</button>
        <span class="quiet">
          {duration(data.total)} in {data.source}
          {data.hidden > 0 && `; ${data.hidden} calls too short to be seen are left out`}
        </span>
      </div>
      <div class="canvas">
        <canvas ref={canvas} role="img" aria-label={`Flame graph of ${data.parent.length} calls`} data-nodes={data.parent.length} onMouseMove={(event) => setHover(nodeAt(event))} onMouseLeave={() => setHover(null)} onClick={(event) => { const hit = nodeAt(event); if (hit !== null) props.change({ node: String(hit.node) }); }} />
        {hover !== null && place !== undefined && (
          <div class="hover" style={{ left: `${Math.min(hover.x + 14, (canvas.current?.clientWidth ?? 600) - 320)}px`, top: `${hover.y + 14}px` }}>
            {place.name}
            <br />
            {duration(data.total_time[hover.node] ?? 0)} ({share(data.total_time[hover.node] ?? 0)}), own {duration(data.own_time[hover.node] ?? 0)}
            {place.file !== "" && <><br />{place.file}{place.line > 0 && `:${place.line}`}</>}
          </div>
        )}
      </div>
    </>
  );
}
