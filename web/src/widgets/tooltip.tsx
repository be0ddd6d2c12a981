// A few words beside the pointer, over everything and within the window: what is short cannot clip them.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** How far it is from the pointer. */
const AWAY = 14;

/** Where it fits: beside and below a point of the window, or on the other side of it. */
export function fitting(x: number, y: number, size: { width: number; height: number }, room: { width: number; height: number }): { left: number; top: number } {
  const left = x + AWAY + size.width <= room.width ? x + AWAY : Math.max(0, Math.min(x - AWAY - size.width, room.width - size.width));
  const top = y + AWAY + size.height <= room.height ? y + AWAY : Math.max(0, y - AWAY - size.height);
  return { left, top };
}

/** At a place of an element, in its pixels. */
export function Tooltip(props: { of: HTMLElement | null; x: number; y: number; children: ComponentChildren }) {
  const own = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const [box, size] = [props.of?.getBoundingClientRect(), own.current?.getBoundingClientRect()];
    if (own.current === null || box === undefined || size === undefined) return;
    const { left, top } = fitting(box.left + props.x, box.top + props.y, size, { width: document.documentElement.clientWidth, height: innerHeight });
    own.current.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  });
  return <div ref={own} class="hover" role="status">{props.children}</div>;
}
