// The tabs of the page and the views in each. One line adds a view; addresses name views, so that a view can move to another tab.

import type { ComponentType } from "preact";
import words from "../../docs/glossary.md?raw";
import { Advice } from "./views/advice";
import { Compare } from "./views/compare";
import { Flame } from "./views/flame";
import { glossary } from "./views/glossary";
import { Gpu } from "./views/gpu";
import { Memory } from "./views/memory";
import { Modules } from "./views/modules";
import { Overview } from "./views/overview";
import { Quality } from "./views/quality";
import { Ranks } from "./views/ranks";
import { Source } from "./views/source";
import { Steps } from "./views/steps";
import { tables } from "./views/tables";
import { Timeline } from "./views/timeline";
import type { ViewProperties } from "./views/view";

export interface View {
  name: string;
  title: string;
  Component: ComponentType<ViewProperties>;
}

export interface Tab {
  name: string;
  title: string;
  views: readonly [View, ...View[]];
}

const GROUPS = [
  { name: "operators", title: "Operator" },
  { name: "shapes", title: "Input shape" },
  { name: "stacks", title: "Stack" },
  { name: "modules", title: "Module" },
  { name: "threads", title: "Thread" },
] as const;

export const TABS: readonly [Tab, ...Tab[]] = [
  {
    name: "overview",
    title: "Overview",
    views: [
      { name: "overview", title: "Overview", Component: Overview },
      { name: "advice", title: "Advice", Component: Advice },
      { name: "steps", title: "Steps", Component: Steps },
      { name: "quality", title: "Data quality", Component: Quality },
    ],
  },
  { name: "timeline", title: "Timeline", views: [{ name: "timeline", title: "Timeline", Component: Timeline }] },
  {
    name: "compute",
    title: "Compute",
    views: [
      { name: "operators", title: "Operators", Component: tables(GROUPS, { chart: true }) },
      { name: "modules", title: "Modules", Component: Modules },
    ],
  },
  {
    name: "gpu",
    title: "GPU",
    views: [
      { name: "gpu", title: "GPU", Component: Gpu },
      { name: "kernels", title: "Kernels", Component: tables([{ name: "kernels", title: "Kernel" }, { name: "streams", title: "Stream" }], { chart: true }) },
      { name: "copies", title: "Copies", Component: tables([{ name: "copies", title: "Copy" }], { chart: true, names: ["kind", "from", "to"] }) },
    ],
  },
  {
    name: "python",
    title: "Python",
    views: [
      { name: "functions", title: "Functions", Component: tables([{ name: "functions", title: "Function" }, { name: "lines", title: "Line" }], { chart: true, names: ["function", "file", "line"], source: true }) },
      { name: "source", title: "Source", Component: Source },
      { name: "flame", title: "Flame graph", Component: Flame },
    ],
  },
  { name: "memory", title: "Memory", views: [{ name: "memory", title: "Memory", Component: Memory }] },
  { name: "distributed", title: "Distributed", views: [{ name: "ranks", title: "Distributed", Component: Ranks }] },
  { name: "compare", title: "Compare", views: [{ name: "compare", title: "Compare", Component: Compare }] },
];

export const VIEWS: readonly View[] = TABS.flatMap((tab) => tab.views);

/** The page behind `?`, which belongs to no tab. */
export const GLOSSARY: View = { name: "glossary", title: "Glossary", Component: glossary(words) };

/** The view that an address names, by itself or by its tab. */
export function viewNamed(name: string): View {
  return [...VIEWS, GLOSSARY].find((known) => known.name === name) ?? TABS.find((tab) => tab.name === name)?.views[0] ?? TABS[0].views[0];
}
