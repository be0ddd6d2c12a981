// What scripts share that use the dashboard as a person would: they begin with an address and words on the standard input, do one thing after
// another, and print what came of each as JSON.
import { readFileSync } from "node:fs";
import { open } from "./browser.mjs";

/** A page, and what the test said. */
export async function start(options = {}) {
  const address = process.argv[2];
  const wanted = JSON.parse(readFileSync(0, "utf8"));
  const browser = await open(address, options);
  /** What the address of the page says. */
  const parameters = () => browser.page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1])));
  /** When the address says something of this name. */
  const changed = (name) => browser.page.waitForFunction((known) => new URLSearchParams(location.hash.split("?")[1]).has(known), name);
  return { ...browser, address, wanted, parameters, changed };
}

/** Does each of them; a name may end in `_` where it would be a word of the language. */
export async function perform({ context, complaints }, actions) {
  const seen = {};
  let doing = "";
  try {
    for (const action of actions) {
      doing = action.name.replace(/_$/, "");
      seen[doing] = await action();
    }
  } catch (error) {
    seen.failed = `${doing}: ${String(error)}`;
  } finally {
    await context.close();
  }
  console.log(JSON.stringify({ ...seen, complaints }));
}
