// Somebody looks at every screen of the console, at two widths, by day and by night.
//
//     node walk.mjs '{"executablePath", "entrance", "axe", "folder"?, "screens": [{"name", "path", "open"?}], "live",
//                     "acts"?: {"command", "file"}}'
//
// `folder`: where to leave a picture of each screen. `open`: selectors to click before looking. `live`: a page on which
// a call is waited for: a line `ready` is printed when somebody may make it. `acts`: what the console does is done, too,
// with this command of a server to add and this file to drop. At last, what was found wrong is printed as JSON, for each
// screen.

import { readFileSync } from "node:fs";

import { chromium } from "playwright-core";

const { executablePath, entrance, axe, folder, screens, live, acts } = JSON.parse(process.argv[2]);
const axeSource = readFileSync(axe, "utf8");
const origin = new URL(entrance).origin;
const args = ["--no-sandbox", "--no-proxy-server", "--disable-gpu", "--autoplay-policy=user-gesture-required"];
const browser = await chromium.launch({ executablePath, args });
const context = await browser.newContext();
const found = {};

function watch(page, name) {
  const faults = (found[name] = []);
  const note = (kind, what) => faults.push(`${kind}: ${what}`);
  page.removeAllListeners();
  // A request that a newer one of its form replaces, or that a page leaves behind, is aborted: htmx calls that an error.
  const aborted = /^htmx:(sendAbort|afterRequest)\b/;
  page.on("console", (message) => message.type() === "error" && !aborted.test(message.text()) && note("console", message.text()));
  page.on("pageerror", (error) => note("script", error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) note("elsewhere", request.url());
  });
  page.on("response", (response) => response.status() >= 400 && note(response.status(), response.url()));
  page.on("dialog", (dialog) => {
    note("dialog", dialog.message());
    dialog.dismiss();
  });
  return note;
}

/** Opens a screen at one width, and looks at it by day and by night. */
async function look(page, screen, width) {
  for (const colorScheme of ["light", "dark"]) {
    const note = watch(page, `${screen.name}-${width}-${colorScheme}`);
    await page.emulateMedia({ colorScheme });
    if (colorScheme === "light") await open(page, screen, width);
    await page.waitForTimeout(300);
    const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    if (tooWide > 0) note("too wide", `${tooWide} px`);
    const { violations } = await page.evaluate(`${axeSource}; axe.run(document, { resultTypes: ["violations"] })`);
    for (const { id, nodes } of violations) note("axe", `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
    await photograph(page, `${screen.name}-${width}-${colorScheme}`);
  }
}

async function open(page, screen, width) {
  await page.setViewportSize({ width, height: 900 });
  await page.goto(origin + screen.path, { waitUntil: "load" });
  await page.waitForFunction(() => !document.querySelector(".waiting, .htmx-request"), null, { timeout: 120_000 });
  for (const selector of screen.open ?? []) await page.click(selector);
}

async function photograph(page, name) {
  if (folder) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}

/** Shows a change, writes it, and waits until the gateway says that it is in force. */
async function change(page, button) {
  await button.click();
  await page.getByRole("button", { name: "Write it" }).click();
  await page.getByText("In force: ", { exact: false }).waitFor();
}

async function doThings(page) {
  await page.emulateMedia({ colorScheme: "light" });
  watch(page, "act-add");
  await page.goto(`${origin}/console/servers`);
  await page.fill("[name=name]", "added");
  await page.fill("[name=server]", acts.command);
  await change(page, page.getByRole("button", { name: "Show the change" }));
  await page.getByRole("link", { name: "Look at added" }).click();

  watch(page, "act-registry");
  await page.goto(`${origin}/console/servers`);
  await page.fill("[name=words]", "weather");
  await page.getByRole("button", { name: "Search" }).click();
  await page.locator(".results summary", { hasText: "add it" }).first().click();
  await page.fill("[name='value.API_KEY']", "sesame-77");
  await page.selectOption("[name='value.units']", "metric");
  await page.locator(".results").getByRole("button", { name: "Show the change" }).first().click();
  await page.locator(".results .diff", { hasText: "@acme/weather@1.2.0" }).waitFor();
  await page.goto(`${origin}/console/servers/added`);

  watch(page, "act-restart");
  await page.getByRole("button", { name: "Restart" }).click();
  await page.locator("#server-state .chip", { hasText: "ready" }).waitFor();

  watch(page, "act-tools");
  await page.reload();
  await page.locator(".pick input").first().uncheck();
  await change(page, page.getByRole("button", { name: "Show the change" }));

  watch(page, "act-disable");
  await page.reload();
  await change(page, page.getByRole("button", { name: "Disable …" }));
  await page.reload();
  await change(page, page.getByRole("button", { name: "Enable …" }));

  watch(page, "act-answer");
  await page.goto(`${origin}/console/try/tools/trial__ask`);
  await page.click(".go");
  await page.locator("form.asked [name='s:/name']").fill("Ada");
  await page.getByRole("button", { name: "Accept" }).click();
  await page.locator("#run .chip", { hasText: "done" }).waitFor();

  watch(page, "act-again");
  await page.locator("#run .status a").click();
  await page.getByRole("link", { name: "Try again" }).click();
  await page.waitForSelector("form.try");

  watch(page, "act-file");
  await page.goto(`${origin}/console/try/tools/trial__look`);
  await page.locator("input[data-upload]").setInputFiles(acts.file);
  await page.locator(".told", { hasText: "is stored as" }).waitFor();

  watch(page, "act-cancel");
  await page.goto(`${origin}/console/try/tools/trial__slow`);
  await page.click(".go");
  await page.locator("#run progress").waitFor();
  await page.click("#cancel-run");
  await page.locator("#run .chip", { hasText: "cancelled" }).waitFor();

  watch(page, "act-compare");
  await page.goto(origin + acts.pictures);
  await page.waitForFunction(() => !document.querySelector(".waiting, .htmx-request"), null, { timeout: 120_000 });
  const compared = await page.locator("#compared article.seen").count();
  await page.selectOption("[data-chooser] select", "cline");
  await page.getByRole("button", { name: "Add" }).click();
  const added = page.locator("#compared article.seen").nth(compared);
  await added.getByRole("tab", { name: "without" }).click();
  await added.locator("[role=tabpanel][id^=direct]").waitFor();
  await added.locator("[data-close]").click();
  await page.waitForFunction((count) => document.querySelectorAll("#compared article.seen").length === count, compared);

  watch(page, "act-approve");
  await page.goto(`${origin}/console/`);
  await page.getByRole("link", { name: "2 calls to approve" }).click();
  await page.locator("li.approval", { hasText: "yes, please" }).getByRole("button", { name: "Approve" }).click();
  await page.locator("li.approval .chip", { hasText: "approved" }).waitFor();
  await page.locator("li.approval", { hasText: "rather not" }).getByRole("button", { name: "Deny" }).click();
  await page.locator("li.approval .chip", { hasText: "denied" }).waitFor();

  watch(page, "act-edit");
  await page.goto(`${origin}/console/hosts/mine`);
  await page.getByRole("link", { name: "Edit", exact: true }).click();
  await page.selectOption("[name=call]", acts.shownOn);
  await page.fill("[name='image.max_edge']", "320");
  await page.locator("#effect .diff .added", { hasText: "320" }).waitFor();
  await page.locator("#effect [data-slide] figcaption", { hasText: "→ image/png, 320 ×" }).first().waitFor({ timeout: 60_000 });
  const shown = page.locator("#effect .diff");
  await shown.evaluate((each) => { each.dataset.kept = "yes"; });
  await page.locator("#effect [data-slide] input").first().fill("20");
  await page.waitForTimeout(900);  // the slider is not a value: moving it asks for nothing
  if ((await page.locator("#effect .diff[data-kept]").count()) !== 1) throw new Error("moving the slider has loaded the effect again");
  await page.evaluate(() => scrollTo(0, 0));
  await photograph(page, "edited-1280-light");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("#saved .chip", { hasText: "saved" }).waitFor();
  await page.getByRole("link", { name: "Edit it further" }).click();
  await page.waitForFunction(() => document.querySelector("[name='image.max_edge']")?.value === "320");

  watch(page, "act-calibrate");
  await page.goto(`${origin}/console/calibration`);
  await page.getByRole("button", { name: "Begin" }).click();
  await page.getByText("Please calibrate the gateway.").waitFor();
  await page.click("#calibration-stop");
  await page.getByRole("button", { name: "Begin" }).waitFor();

  watch(page, "act-toolset");
  await page.goto(`${origin}/console/toolsets`);
  const form = page.locator(".add");
  await form.locator("[name=name]").fill("clicked");
  await form.locator("[name=upstreams]").fill("added");
  await change(page, form.getByRole("button", { name: "Show the change" }));
  await page.reload();
  const clicked = page.locator("section", { has: page.getByRole("heading", { name: "clicked" }) });
  await clicked.getByText("Change it").click();
  await clicked.getByText("trial: 0 of").click();
  await clicked.locator("[name=offered][value=trial__ask]").check();
  await clicked.getByRole("button", { name: "Show the change" }).click();
  await clicked.getByText("It then has ").waitFor();
  await change(page, clicked.getByRole("button", { name: "Show the change" }));

  watch(page, "act-toolset-away");
  await page.reload();
  await clicked.getByText("Change it").click();
  await change(page, clicked.getByRole("button", { name: "Remove …" }));

  watch(page, "act-take-away");
  await page.goto(`${origin}/console/servers/added`);
  await change(page, page.getByRole("button", { name: "Remove …" }));

  watch(page, "act-remove");
  await page.goto(`${origin}/console/store`);
  await page.locator("main a[href*='/store/']").first().click();
  page.removeAllListeners("dialog");
  page.once("dialog", (dialog) => dialog.accept());
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByText("removed", { exact: false }).first().waitFor();
}

try {
  const page = await context.newPage();
  await page.goto(entrance);
  for (const screen of screens) {
    for (const width of [1280, 400]) await look(page, screen, width);
  }
  if (acts) {
    await page.setViewportSize({ width: 1280, height: 900 });
    await doThings(page);
  }
  if (live) {
    page.removeAllListeners();
    await page.goto(origin + live);
    const before = await page.locator("li.call").count();
    await page.waitForTimeout(500);
    console.log("ready");
    await page.waitForFunction((count) => document.querySelectorAll("li.call").length > count, before);
    await page.waitForFunction(() => !document.querySelector(".chip.running"));
    found.live = [];
  }
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}
