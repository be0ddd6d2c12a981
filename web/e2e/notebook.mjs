// Opens a page with the dashboard in a frame, as a notebook has it, goes to a view in it, and prints what the frame shows.
// Usage: node e2e/notebook.mjs ADDRESS
import { perform, start } from "./harness.mjs";

const browser = await start();
await browser.page.goto(browser.address);
const frame = browser.page.frameLocator("iframe");

await perform(browser, [
  async function sentence() {
    return frame.locator(".verdict .sentence").innerText();
  },
  async function operators() {
    await frame.locator(".views a[data-tab=compute]").click();
    return frame.locator("main table tbody tr").first().innerText();
  },
  async function theme() {
    await frame.locator("button.theme").click();
    return frame.locator("html").getAttribute("data-theme");
  },
  async function markup() {
    return frame.locator("img").count();
  },
]);
