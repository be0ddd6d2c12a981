// The single spans of a page to share. Of a small trace it has all of them, and so finds spans by name and beside each other without a server;
// of a large one it has those that advice points at. The server's answers to the same questions are in crates/hotspan-view/src/timeline.

import type { Beside, Found, HeldSpans as Data, Hit, Picture, SpanDetails, TimelineInfo } from "./api";
import { decode, decodeText, NO_SPAN, type TrackTile } from "./tile_bytes";

/** Names of matches that are told, as by the server. */
const MOST_NAMES = 2000;

type Answers = Readonly<Record<string, SpanDetails>>;

/** The lanes of each track that has spans or sampled calls, each in order of time. */
type Lanes = ReadonlyMap<number, readonly (readonly Hit[])[]>;

async function unpacked(data: string): Promise<Answers> {
  const stream = new Blob([decodeText(data)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as Answers;
}

function lanesOf(tile: TrackTile, track: number): Hit[][] {
  const hit = (place: number, depth: number): Hit => {
    const span = tile.span[place] ?? NO_SPAN;
    return { span: span === NO_SPAN ? -1 : span, name: tile.looks.list[tile.look[place] ?? 0]?.name ?? "", track, depth, begin: tile.begin[place] ?? 0, end: tile.end[place] ?? 0 };
  };
  return Array.from({ length: tile.lanes.length - 1 }, (_, depth) => {
    const first = tile.lanes[depth] ?? 0;
    return Array.from({ length: (tile.lanes[depth + 1] ?? first) - first }, (_, row) => hit(first + row, depth));
  });
}

const at = (lane: readonly Hit[] | undefined, time: number): Hit | undefined => lane?.findLast((hit) => hit.begin <= time && (time < hit.end || time === hit.begin));
const inOrder = (left: Hit, right: Hit) => left.begin - right.begin || left.track - right.track || left.depth - right.depth;
const around = (number: number, total: number) => ((number % total) + total) % total;

export class HeldSpans {
  private answers: Promise<Answers> | null = null;
  private drawn: Lanes | null = null;
  private readonly some: ReadonlySet<number>;

  private constructor(
    private readonly data: Data,
    private readonly picture: Picture,
    private readonly info: TimelineInfo,
  ) {
    this.some = new Set(data.spans);
  }

  /** Those of a trace, where the page has any. */
  static of(inlined: Readonly<Record<string, unknown>>, run: number): HeldSpans | null {
    const [data, picture, info] = [inlined[`run/${run}/held`], inlined[`run/${run}/picture`], inlined[`run/${run}/timeline`]];
    return data === undefined ? null : new HeldSpans(data as Data, picture as Picture, info as TimelineInfo);
  }

  get all(): boolean {
    return this.data.all;
  }

  has(span: number): boolean {
    return this.all || this.some.has(span);
  }

  /** The answer to a question about spans; `undefined` where there is none. */
  async answer(question: string): Promise<unknown> {
    const [name = "", query = ""] = question.split("?", 2);
    if (name === "call" || name.startsWith("span/")) return (await this.unpacked())[question] ?? undefined;
    if (!this.all) return undefined;
    const words = new URLSearchParams(query);
    const number = (key: string) => Number(words.get(key));
    if (name === "beside") return { hit: this.beside(number("track"), number("depth"), number("at"), words.get("to") ?? "") } satisfies Beside;
    if (name === "same") return this.same(number("track"), number("depth"), number("at"), number("step"));
    return name === "search" ? this.search(words) : undefined;
  }

  private unpacked(): Promise<Answers> {
    this.answers ??= unpacked(this.data.data);
    return this.answers;
  }

  private lanes(): Lanes {
    if (this.drawn === null) {
      const tiles = decode(decodeText(this.picture.data).buffer);
      const tracks = this.info.tracks.filter((track) => track.kind !== "counter");
      this.drawn = new Map(tracks.flatMap(({ id }) => (tiles.has(id) ? [[id, lanesOf(tiles.get(id) as TrackTile, id)]] : [])));
    }
    return this.drawn;
  }

  /** All that fit, in order of time. Idle time is no span. */
  private fitting(fits: (hit: Hit) => boolean): Hit[] {
    const tracks = this.info.tracks.filter((track) => track.kind === "spans" || track.kind === "samples");
    return tracks.flatMap(({ id }) => (this.lanes().get(id) ?? []).flatMap((lane) => lane.filter(fits))).toSorted(inOrder);
  }

  private async search(words: URLSearchParams): Promise<Found> {
    const none: Found = { total: 0, place: 0, hit: null, names: [], complete: true, problem: null };
    const text = words.get("text") ?? "";
    let matches = (known: string) => known.toLowerCase().includes(text.toLowerCase());
    if (words.get("pattern") === "1") {
      try {
        const pattern = new RegExp(text, "i");
        matches = (known) => pattern.test(known);
      } catch (error) {
        return { ...none, problem: `This is no regular expression: ${error instanceof Error ? error.message : String(error)}.` };
      }
    }
    const details = words.get("args") === "1" ? await this.unpacked() : {};
    const hits = this.fitting((hit) => matches(hit.name) || (details[`span/${hit.span}`]?.args ?? []).some(({ key, value }) => matches(`${key}: ${value}`)));
    if (hits.length === 0) return none;
    const after = Number(words.get("after") ?? -Infinity);
    const first = hits.findIndex((hit) => hit.begin >= after);
    const place = words.has("number") ? around(Number(words.get("number")), hits.length) : Math.max(0, first);
    return { ...none, total: hits.length, place, hit: hits[place] ?? null, names: [...new Set(hits.map((hit) => hit.name))].slice(0, MOST_NAMES) };
  }

  /** So many further among the spans of the same name. */
  private same(track: number, depth: number, time: number, steps: number): Found | undefined {
    const own = at(this.lanes().get(track)?.[depth], time);
    if (own === undefined) return undefined;
    const hits = this.fitting((hit) => hit.name === own.name);
    const place = around(hits.findIndex((hit) => inOrder(hit, own) === 0) + steps, hits.length);
    return { total: hits.length, place, hit: hits[place] ?? null, names: [own.name], complete: true, problem: null };
  }

  /** The span before or after the one that begins at a time, around it, within it, or nearest to the time. */
  private beside(track: number, depth: number, time: number, to: string): Hit | null {
    const lanes = this.lanes().get(track) ?? [];
    const own = lanes[depth] ?? [];
    const away = (hit: Hit) => Math.max(hit.begin - time, time - hit.end);
    if (to === "left") return own.findLast((hit) => hit.begin < time) ?? null;
    if (to === "right") return own.find((hit) => hit.begin > time) ?? null;
    if (to === "near") return own.toSorted((left, right) => away(left) - away(right))[0] ?? null;
    const outside = lanes.slice(0, depth).flatMap((lane) => at(lane, time) ?? []);
    if (to === "up") return outside.at(-1) ?? null;
    const end = at(own, time)?.end ?? time;
    return lanes.slice(depth + 1).flatMap((lane) => lane.find((hit) => hit.begin >= time && hit.begin < end) ?? [])[0] ?? null;
  }
}
