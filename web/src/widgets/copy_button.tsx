// Copies rows of a table as CSV, with bare numbers under the keys that programs use.

import { useState } from "preact/hooks";
import { csv } from "../base/csv";
import type { Cell, ColumnData } from "../data/api";

export function CopyButton({ columns, rows }: { columns: readonly ColumnData[]; rows: readonly (readonly Cell[])[] }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(csv(columns.map((column) => column.key), rows));
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return <button type="button" onClick={() => void copy()}>{copied ? "Copied" : "Copy as CSV"}</button>;
}
