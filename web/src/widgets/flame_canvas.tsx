// Draws a flame graph. A click, or Enter, makes a call fill the width; the arrow keys go from call to call.

import { useEffect, useRef, useState } from "preact/hooks";
import { changeColour, prefersDark } from "../base/colour";
import { flameColour, type FlameColour } from "../base/flame_colour";
import type { FlameLayout } from "../base/flame_layout";
import { duration, percent } from "../base/units";
import type { FlameData } from "../data/api";
import { fitted, FONT, sheet } from "./canvas";
import { Tooltip } from "./tooltip";

const ROW = 18;

interface Properties {
  data: FlameData;
  layout: FlameLayout;
  label: string;
  /** Roots at the bottom: for callers. */
  upward?: boolean;
  /** Which places match what is searched for, if anything is: others are pale. */
  found?: Uint8Array | null;
  /** What tells the colour of a call. */
  colour?: FlameColour;
  /** The call that fills the width. */
  focus?: number;
  onFocus?: (node: number | null) => void;
}

export function FlameCanvas({ data, layout, label, upward = false, found = null, colour = "name", focus = -1, onFocus }: Properties) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState<{ node: number; x: number; y: number } | null>(null);
  const focused = focus >= 0 && focus < data.parent.length && (layout.width[focus] ?? 0) > 0 ? focus : -1;
  const [from, length] = focused >= 0 ? [layout.left[focused] ?? 0, layout.width[focused] ?? 1] : [0, layout.total];
  const row = (node: number) => (upward ? layout.deepest - (layout.depth[node] ?? 0) : (layout.depth[node] ?? 0));
  const compared = data.before.length > 0;
  const current = hover?.node ?? -1;

  useEffect(() => {
    const redraw = () => {
      const paper = canvas.current === null ? null : sheet(canvas.current, (layout.deepest + 1) * ROW);
      if (paper === null) return;
      const { context, width } = paper;
      const dark = prefersDark();
      const colours = data.places.map((place) => flameColour(place, colour, dark));
      context.font = FONT;
      context.textBaseline = "middle";
      for (let node = 0; node < data.parent.length; node++) {
        const left = (((layout.left[node] ?? 0) - from) / length) * width;
        const wide = ((layout.width[node] ?? 0) / length) * width;
        if (wide < 0.4 || left + wide < 0 || left > width) continue;
        const [begin, end, top] = [Math.max(0, left), Math.min(width, left + wide), row(node) * ROW];
        const index = data.place[node] ?? 0;
        const name = data.places[index]?.name ?? "";
        context.globalAlpha = found !== null && found[index] !== 1 ? 0.3 : 1;
        context.fillStyle = compared ? changeColour(data.before[node] ?? 0, data.total_time[node] ?? 0, dark) : (colours[index] ?? "");
        context.fillRect(begin, top, Math.max(0.5, end - begin - 0.5), ROW - 1);
        if (node === current) {
          context.strokeStyle = dark ? "#fff" : "#1b1f27";
          context.strokeRect(begin + 0.5, top + 0.5, Math.max(1, end - begin - 1.5), ROW - 2);
        }
        context.fillStyle = dark ? "#fff" : "#1b1f27";
        if (end - begin > 24) context.fillText(fitted(name, end - begin), begin + 3, top + ROW / 2);
      }
      context.globalAlpha = 1;
    };
    redraw();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    addEventListener("resize", redraw);
    scheme.addEventListener("change", redraw);
    return () => {
      removeEventListener("resize", redraw);
      scheme.removeEventListener("change", redraw);
    };
  }, [data, layout, from, length, found, colour, current, upward]);

  const nodeAt = (event: MouseEvent) => {
    const box = canvas.current?.getBoundingClientRect();
    if (box === undefined) return null;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const [time, line] = [from + (x / box.width) * length, Math.floor(y / ROW)];
    for (let node = 0; node < data.parent.length; node++) {
      const left = layout.left[node] ?? 0;
      if (row(node) === line && time >= left && time < left + (layout.width[node] ?? 0)) return { node, x, y };
    }
    return null;
  };
  const choose = (node: number) => {
    const left = (((layout.left[node] ?? 0) - from) / length) * (canvas.current?.clientWidth ?? 0);
    setHover({ node, x: Math.max(0, left), y: row(node) * ROW });
  };
  const pressed = (event: KeyboardEvent) => {
    const parent = data.parent[current] ?? -1;
    const children = (of: number) => data.parent.flatMap((known, node) => (known === of && (layout.width[node] ?? 0) > 0 ? [node] : []));
    const sisters = children(current < 0 ? -1 : parent);
    const place = sisters.indexOf(current);
    const [down, up] = upward ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
    let next: number | undefined;
    if (event.key === down) next = current < 0 ? sisters[0] : children(current)[0];
    else if (event.key === up) next = parent >= 0 ? parent : current;
    else if (event.key === "ArrowRight") next = sisters[place + 1] ?? sisters[place];
    else if (event.key === "ArrowLeft") next = sisters[Math.max(0, place - 1)];
    else if (event.key === "Enter" && current >= 0) onFocus?.(current);
    else if (event.key === "Escape") onFocus?.(null);
    else return;
    event.preventDefault();
    if (next !== undefined && next >= 0) choose(next);
  };
  const place = hover === null ? undefined : data.places[data.place[hover.node] ?? 0];
  const time = hover === null ? 0 : (data.total_time[hover.node] ?? 0);
  const share = percent((time / Math.max(1, data.total)) * 100);
  return (
    <div class="canvas">
      <canvas
        ref={canvas}
        role="img"
        tabIndex={0}
        aria-label={`${label}: ${data.parent.length} calls. Arrow keys go from call to call, Enter enlarges, Escape shows all.`}
        data-nodes={data.parent.length}
        onMouseMove={(event) => setHover(nodeAt(event))}
        onMouseLeave={() => setHover(null)}
        onKeyDown={pressed}
        onClick={(event) => {
          const hit = nodeAt(event);
          if (hit !== null) onFocus?.(hit.node);
        }}
      />
      {hover !== null && place !== undefined && (
        <Tooltip of={canvas.current} x={hover.x} y={hover.y}>
          {place.name}
          <br />
          {duration(time)} ({share}){data.own_time[hover.node] !== undefined && `, own ${duration(data.own_time[hover.node] ?? 0)}`}
          {compared && `, before ${duration(data.before[hover.node] ?? 0)}`}
          {place.file !== "" && <><br />{place.file}{place.line > 0 && `:${place.line}`}</>}
        </Tooltip>
      )}
    </div>
  );
}
