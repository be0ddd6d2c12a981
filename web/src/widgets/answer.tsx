// What is shown when an answer is there, when it failed, and when there is nothing to show; waiting.tsx has what is shown until then.

import type { ComponentChildren } from "preact";
import type { Loaded } from "../data/server";
import { Waiting } from "./waiting";

export function Answer<T>(props: { loaded: Loaded<T>; children: (value: T) => ComponentChildren }) {
  const { loaded } = props;
  if (loaded.state === "waiting") return <Waiting />;
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
