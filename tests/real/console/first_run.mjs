// Somebody opens the console of an empty gateway, takes over a server of a host, and makes a first call.
//
//     node first_run.mjs '{"executablePath", "entrance", "folder"?, "tool"}'
//
// What was seen is printed as JSON: `offered` servers, `hosts` beside the first call, and `faults`.

import { chromium } from "playwright-core";

const { executablePath, entrance, folder, tool } = JSON.parse(process.argv[2]);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--no-proxy-server", "--disable-gpu"] });
const seen = { faults: [] };

try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on("console", (message) => message.type() === "error" && seen.faults.push(message.text()));
  page.on("pageerror", (error) => seen.faults.push(error.message));
  await page.goto(entrance);
  await page.goto(`${new URL(entrance).origin}/console/`);
  await page.getByText("Your hosts have these servers: take them over").waitFor();
  seen.offered = await page.locator(".found .pick").allTextContents();
  if (folder) await page.screenshot({ path: `${folder}/first-run-1280-light.png`, fullPage: true });
  await page.getByRole("button", { name: "Show the change" }).click();
  await page.getByRole("button", { name: "Write it" }).click();
  await page.getByRole("link", { name: "try one of its tools" }).click();
  const link = page.getByRole("link", { name: tool });
  // It has just been started: its tools are listed when it is ready.
  for (let looked = 0; looked < 60 && !(await link.count()); looked += 1) {
    await page.waitForTimeout(500);
    await page.reload();
  }
  await link.click();
  await page.click(".go");
  await page.locator("#run .chip", { hasText: "done" }).waitFor();
  await page.locator("#run .status a").click();
  await page.getByRole("heading", { name: "What each model sees" }).waitFor();
  await page.waitForFunction(() => !document.querySelector(".waiting, .htmx-request"), null, { timeout: 120_000 });
  seen.hosts = await page.locator("#compared article h3").allTextContents();
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
}
