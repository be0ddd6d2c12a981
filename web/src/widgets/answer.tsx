// What is shown while an answer is waited for, when it failed, and when there is nothing to show.

import type { ComponentChildren } from "preact";
import type { Loaded } from "../data/server";

export function Answer<T>(props: { loaded: Loaded<T>; children: (value: T) => ComponentChildren }) {
  const { loaded } = props;
  if (loaded.state === "waiting") return <p class="waiting" role="status">Loading…</p>;
  if (loaded.state === "failed") {
    return (
      <div class="problem" role="alert">
        <p>{loaded.error.message}</p>
        {loaded.error.hint !== null && <p class="quiet">{loaded.error.hint}</p>}
      </div>
    );
  }
  return <>{props.children(loaded.value)}</>;
}

export function Empty(props: { record: string }) {
  return (
    <div class="empty">
      <p>This trace has nothing to show here.</p>
      {props.record !== "" && (
        <p>
          To fill it: <code>{props.record}</code>
        </p>
      )}
    </div>
  );
}
