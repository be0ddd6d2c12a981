// The tracks of a timeline as a list, to fold, pin and find them without a mouse.

import { useState } from "preact/hooks";
import type { TrackInfo } from "../data/api";
import type { Arrangement } from "./timeline_layout";

const MOST = 200;

interface Properties {
  tracks: readonly TrackInfo[];
  arrangement: Arrangement;
  onFold: (track: number) => void;
  onClose: (group: string) => void;
  onPin: (track: number) => void;
  onGo: (track: number) => void;
}

export function TrackList(props: Properties) {
  const [filter, setFilter] = useState("");
  const { arrangement } = props;
  const kept = props.tracks.filter((track) => `${track.process} ${track.name}`.toLowerCase().includes(filter.toLowerCase()));
  return (
    <details class="tracks">
      <summary>{props.tracks.length} tracks</summary>
      <input type="text" placeholder="Filter tracks" aria-label="Filter tracks" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
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
