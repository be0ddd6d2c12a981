// Takes the pictures of the documentation. Usage: node e2e/screenshots.mjs ADDRESS FOLDER [VIEW …]
import { join } from "node:path";
import { open, show } from "./browser.mjs";

const [address, folder, ...views] = process.argv.slice(2);
for (const dark of [false, true]) {
  const { page, context } = await open(address, { dark });
  for (const view of views) {
    await show(page, address, view);
    await page.waitForTimeout(500);
    await page.screenshot({ path: join(folder, `view-${view}${dark ? "-dark" : ""}.png`) });
  }
  await context.close();
}
