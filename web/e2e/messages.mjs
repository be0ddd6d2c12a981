// What the page says about files that are no trace, arrive, change or go while it is open. The test that runs it changes the files when told so.
// Usage: node e2e/messages.mjs ADDRESS BROKEN_RUN GOOD_RUN   Prints "change", "arrive" and "remove" and waits for a line each time; then what it saw, as JSON.
import { createInterface } from "node:readline";
import { open, settled } from "./browser.mjs";

const [address, broken, good] = process.argv.slice(2);
const lines = createInterface(process.stdin)[Symbol.asyncIterator]();
const { page, context, complaints } = await open(address);
const seen = {};
/** The list of traces is looked at every ten seconds; nobody has to wait for that here. */
const later = () => page.clock.fastForward(11_000);
try {
  await page.clock.install();
  await page.goto(`${address}#/timeline?run=${broken}`);
  seen.broken = await page.innerText(".problem");
  await page.goto(`${address}#/timeline?run=${good}`);
  await page.waitForSelector("canvas");
  console.log("change");
  await lines.next();
  await later();
  seen.changed = await page.innerText("main [role=status]:has(button)");
  await page.click("text=Read it again");
  await page.waitForSelector("main [role=status]:has(button)", { state: "detached" });
  seen.again = await page.innerText(".tracks summary");
  console.log("arrive");
  await lines.next();
  await later();
  seen.arrived = await page.innerText(".notice");
  await page.click(".notice button:text-is('Show it')");
  await page.waitForSelector(".notice", { state: "detached" });
  // The page follows its address, a moment after the notice has gone.
  await page.waitForFunction((before) => new URLSearchParams(location.hash.split("?")[1]).get("run") !== before, good);
  await settled(page);
  seen.shown = await page.innerText("header.top select option:checked");
  await page.goto(`${address}#/timeline?run=${good}`);
  await page.waitForSelector("canvas");
  console.log("remove");
  await lines.next();
  await later();
  // Until the list is there, the error of the last request may be shown.
  seen.gone = await page.innerText('.problem:has-text("no longer")');
} catch (error) {
  seen.failed = String(error);
} finally {
  await context.close();
}
// A file that cannot be opened is answered with an error status, which the browser writes down.
seen.complaints = complaints.filter((text) => !/status of 4(10|22|04)/.test(text));
console.log(JSON.stringify(seen));
process.exit(0);
