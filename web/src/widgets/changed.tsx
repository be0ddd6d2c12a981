// A note when the file of the shown trace has changed since it was read, and a way to read it again.

import { useRef } from "preact/hooks";
import type { Run } from "../data/api";

export function Changed(props: { run: Run; onReload: () => void }) {
  const read = useRef(props.run);
  if (read.current.id !== props.run.id) read.current = props.run;
  const { bytes, modified } = read.current;
  if (bytes === props.run.bytes && modified === props.run.modified) return null;
  const reload = () => {
    read.current = props.run;
    props.onReload();
  };
  return (
    <p class="quiet" role="status">
      {props.run.bytes === 0 ? "The file of this trace is gone or empty now." : "The file of this trace has changed since it was read."}{" "}
      <button type="button" onClick={reload}>Read it again</button>
    </p>
  );
}
