// The tracks of a timeline as a list, to fold, pin and find them without a mouse.

import { useState } from "preact/hooks";
import type { TrackInfo } from "../data/api";
import type { Arrangement } from "./timeline_layout";

const MOST = 200;
/** More than these would leave no room for the others. */
const MOST_PINNED = 20;

/** What a filter stands for, whatever the case of letters; `null` while it is none. */
function patternOf(filter: string): RegExp | null {
  try {
    return new RegExp(filter, "i");
  } catch {
    return null;
  }
}

interface Properties {
  tracks: readonly TrackInfo[];
  arrangement: Arrangement;
  onFold: (track: number) => void;
  onClose: (group: string) => void;
  onPin: (track: number) => void;
  /** Pins all of these, or none. */
  onPins: (tracks: readonly number[]) => void;
  onGo: (track: number) => void;
}

export function TrackList(props: Properties) {
  const [filter, setFilter] = useState("");
  const { arrangement } = props;
  const pattern = patternOf(filter);
  const kept = props.tracks.filter((track) => pattern?.test(`${track.process} ${track.name}`));
  return (
    <details class="tracks">
      <summary>{props.tracks.length} tracks</summary>
      <input type="text" placeholder="Filter tracks" aria-label="Filter tracks" title="Text or a regular expression" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />{" "}
      {filter !== "" && kept.length > 0 && kept.length <= MOST_PINNED && <button type="button" onClick={() => props.onPins([...new Set([...arrangement.pinned, ...kept.map((track) => track.id)])])}>Pin {kept.length === 1 ? "this track" : `these ${kept.length} tracks`}</button>}{" "}
      {arrangement.pinned.length > 0 && <button type="button" onClick={() => props.onPins([])}>Unpin all</button>}
      {pattern === null && <span class="quiet" role="status">Not a valid regular expression.</span>}
      <ul>
        {kept.slice(0, MOST).map((track, place) => (
          <li key={track.id}>
            {track.process !== kept[place - 1]?.process && <h3><button type="button" aria-expanded={!arrangement.closed.has(track.process)} onClick={() => props.onClose(track.process)}>{track.process}</button></h3>}
            <button type="button" onClick={() => props.onGo(track.id)}>{track.name}</button>{" "}
            <button type="button" aria-pressed={arrangement.folded.has(track.id)} onClick={() => props.onFold(track.id)}>fold</button>{" "}
            <button type="button" data-pin={track.id} aria-pressed={arrangement.pinned.includes(track.id)} onClick={() => props.onPin(track.id)}>pin</button>
          </li>
        ))}
      </ul>
      {kept.length > MOST && <p class="quiet">{kept.length - MOST} more; filter to see them.</p>}
    </details>
  );
}
