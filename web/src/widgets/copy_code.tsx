// A piece of code with a button that copies it.

import { useState } from "preact/hooks";

export function CopyCode({ code }: { code: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(code);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <p class="patch">
      <code>{code}</code> <button type="button" onClick={() => void copy()} aria-label={`Copy ${code}`}>{copied ? "Copied" : "Copy"}</button>
    </p>
  );
}
