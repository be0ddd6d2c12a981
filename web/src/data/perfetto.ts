// Handing a trace over to Perfetto's page, which runs in the user's browser: nothing is uploaded. This is the one place that names
// another host, and it is opened only when the user clicks.

const PERFETTO = "https://ui.perfetto.dev";
const ASKED_EVERY = 100;
const PATIENCE = 60_000;

/** Where a click leads. */
export const PERFETTO_PAGE = `${PERFETTO}/`;

/**
 * Opens Perfetto and gives it the trace that `bytes` promises. Perfetto answers PONG to PING as soon as it listens; only then, and
 * only to that origin, the trace is sent.
 */
export async function openInPerfetto(title: string, bytes: () => Promise<ArrayBuffer>): Promise<void> {
  const opened = open(PERFETTO_PAGE);
  if (opened === null) throw new Error("The browser did not open a window: allow pop-ups for this page.");
  const listening = new Promise<void>((resolve, reject) => {
    const done = (finish: () => void) => {
      clearInterval(asking);
      clearTimeout(waiting);
      removeEventListener("message", heard);
      finish();
    };
    const heard = (event: MessageEvent) => {
      if (event.origin === PERFETTO && event.data === "PONG") done(resolve);
    };
    const asking = setInterval(() => opened.postMessage("PING", PERFETTO), ASKED_EVERY);
    const waiting = setTimeout(() => done(() => reject(new Error("Perfetto does not answer. Is there a network?"))), PATIENCE);
    addEventListener("message", heard);
  });
  const [buffer] = await Promise.all([bytes(), listening]);
  opened.postMessage({ perfetto: { buffer, title, fileName: `${title}.json.gz` } }, PERFETTO, [buffer]);
}
