// The shapes of the server's answers. Made from crates/hotspan-view/src/api.rs by
// `HOTSPAN_WRITE=1 cargo test -p hotspan-view --test api_types`; do not edit.

export type Cell = string | number | null;

export interface Problem {
  message: string;
  hint: string | null;
}

export interface RunList {
  runs: Run[];
  note: string | null;
}

export interface Run {
  id: number;
  run: string;
  worker: string;
  cycle: string | null;
  file: string;
  bytes: number;
  modified: number;
}

export interface ProgressData {
  bytes: number;
  total: number;
  events: number | null;
  computing: string[];
}

export interface ClockData {
  run: number;
  name: string;
  offset: number | null;
}

export interface ViewContent {
  view: string;
  filled: boolean;
  record: string;
}

export interface Page {
  sections: Section[];
  record: string;
  words: string[];
}

export interface Section {
  key: string;
  table: TableData;
}

export interface TableData {
  title: string;
  columns: ColumnData[];
  rows: Cell[][];
  units: string[];
  doors: string[];
}

export interface ColumnData {
  key: string;
  title: string;
  unit: string;
  help: string;
  numeric: boolean;
}

export interface TimelineInfo {
  begin: number;
  end: number;
  columns: number;
  tracks: TrackInfo[];
  steps: Band[];
  categories: string[];
  hidden: number;
  record: string;
}

export interface TrackInfo {
  id: number;
  kind: string;
  process: string;
  name: string;
  device: boolean;
  depth: number;
  spans: number;
  unit: string;
  least: number;
  most: number;
}

export interface Band {
  name: string;
  begin: number;
  end: number;
}

export interface TileHead {
  looks: Look[];
  tracks: TileTrack[];
  counters: TileCounter[];
}

export interface Picture {
  level: number;
  data: string;
}

export interface HeldSpans {
  all: boolean;
  spans: number[];
  data: string;
}

export interface Look {
  name: string;
  category: number;
}

export interface TileTrack {
  id: number;
  lanes: number[];
}

export interface TileCounter {
  id: number;
  count: number;
}

export interface SpanDetails {
  id: number;
  name: string;
  category: string;
  process: string;
  track: string;
  track_id: number;
  depth: number;
  begin: number;
  duration: number;
  args: ArgData[];
  linked: Link[];
  stack: Caller[];
  sampled: Caller[];
  door: string;
}

export interface Caller {
  name: string;
  place: string;
  span: number;
  track: number;
  depth: number;
  begin: number;
  end: number;
}

export interface ArgData {
  key: string;
  value: string;
}

export interface Link {
  relation: string;
  span: number;
  name: string;
  track: number;
  depth: number;
  begin: number;
  end: number;
  launch: Place | null;
}

export interface Place {
  track: number;
  depth: number;
  begin: number;
  end: number;
}

export interface Found {
  total: number;
  place: number;
  hit: Hit | null;
  names: string[];
  complete: boolean;
  problem: string | null;
}

export interface Beside {
  hit: Hit | null;
}

export interface Hit {
  span: number;
  name: string;
  track: number;
  depth: number;
  begin: number;
  end: number;
}

export interface AdviceData {
  findings: FindingData[];
  skipped: SkippedData[];
  basis: string;
  about: string | null;
}

export interface FindingData {
  rule: string;
  title: string;
  message: string;
  fix: string;
  source: string | null;
  gain: number | null;
  gain_percent: number | null;
  gain_per_step: number | null;
  confidence: string;
  evidence: TableData;
  gaps: GapData[];
}

export interface VerdictData {
  sentence: string;
  source: string | null;
  view: string;
  step: number | null;
  begin: number;
  end: number;
  bars: BarData[];
}

export interface BarData {
  title: string;
  time: number;
  parts: BarPart[];
}

export interface BarPart {
  key: string;
  title: string;
  time: number;
  share: number;
  idle: boolean;
}

export interface WaterfallData {
  words: string[];
  measure: string;
  before: number;
  after: number;
  causes: CauseData[];
  steps_before: DotData[];
  steps_after: DotData[];
}

export interface CauseData {
  key: string;
  title: string;
  before: number;
  after: number;
  change: number;
  idle: boolean;
}

export interface DotData {
  number: number;
  time: number;
  warm_up: boolean;
}

export interface GapData {
  row: number;
  begin: number;
  end: number;
}

export interface SkippedData {
  need: string;
  record: string;
  rules: string[];
}

export interface Curve {
  title: string;
  unit: string;
  times: number[];
  lines: CurveLine[];
}

export interface CurveLine {
  key: string;
  title: string;
  values: number[];
}

export interface FlameData {
  source: string;
  total: number;
  hidden: number;
  places: FlamePlace[];
  place: number[];
  parent: number[];
  total_time: number[];
  own_time: number[];
  count: number[];
  begin: number[];
  before: number[];
  threads: FlameThread[];
  record: string;
}

export interface FlamePlace {
  name: string;
  file: string;
  line: number;
  own: number;
  total: number;
  origin: string;
  library: string;
}

export interface FlameNames {
  names: string[];
  problem: string | null;
}

export interface FlameThread {
  id: number;
  name: string;
  count: number;
}

export interface SandwichData {
  callers: FlameData;
  callees: FlameData;
}

export interface SourceData {
  file: string;
  lines: string[];
  changed: boolean;
}

export interface ThingData {
  kind: string;
  name: string;
  row: TableData;
  source: string | null;
  begin: number | null;
  end: number | null;
  related: CallData[];
  count: number;
  total: number;
  histogram: BucketData[];
  slowest: CallData[];
  steps: StepData[];
  step_share: number | null;
  stacks: StackData[];
  tables: TableData[];
}

export interface BucketData {
  from: number;
  to: number;
  count: number;
  time: number;
}

export interface CallData {
  what: string;
  name: string;
  span: number | null;
  process: string;
  track: string;
  begin: number;
  duration: number;
  step: number | null;
  source: string | null;
}

export interface StepData {
  first: number;
  last: number;
  begin: number;
  end: number;
  calls: number;
  time: number;
  share: number | null;
}

export interface StackData {
  source: string | null;
  calls: number;
  total: number;
  entries: string[];
}
