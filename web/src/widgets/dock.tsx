// A panel at the bottom of a view whose upper edge can be moved, with the mouse or the arrow keys.

import type { ComponentChildren } from "preact";

interface Properties {
  height: number;
  onHeight: (height: number) => void;
  children: ComponentChildren;
}

const LEAST = 90;
const STEP = 30;

export function Dock({ height, onHeight, children }: Properties) {
  const most = () => Math.max(LEAST, innerHeight - 330);
  const set = (next: number) => onHeight(Math.round(Math.min(most(), Math.max(LEAST, next))));
  const grab = (event: PointerEvent) => {
    const edge = event.currentTarget as HTMLElement;
    const [from, before] = [event.clientY, height];
    edge.setPointerCapture(event.pointerId);
    const moved = (next: PointerEvent) => set(before + from - next.clientY);
    const done = () => {
      edge.removeEventListener("pointermove", moved);
      edge.removeEventListener("pointerup", done);
      edge.removeEventListener("pointercancel", done);
    };
    edge.addEventListener("pointermove", moved);
    edge.addEventListener("pointerup", done);
    edge.addEventListener("pointercancel", done);
  };
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowUp: STEP, ArrowDown: -STEP }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    set(height + step);
  };
  return (
    <div class="dock" style={{ height: `${height}px` }}>
      <div class="edge" role="separator" aria-orientation="horizontal" aria-label="Height of the details" aria-valuenow={height} aria-valuemin={LEAST} aria-valuemax={most()} tabIndex={0} onPointerDown={grab} onKeyDown={pressed} />
      <div class="inside" tabIndex={0} role="region" aria-label="Details">{children}</div>
    </div>
  );
}
