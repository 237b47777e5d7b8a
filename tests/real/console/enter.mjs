// Somebody enters the console with a token, as a browser sends the form, and looks at its first page.
//
//     node enter.mjs '{"executablePath", "address", "token"}'
//
// What the page is called is printed.

import { chromium } from "playwright-core";

const { executablePath, address, token } = JSON.parse(process.argv[2]);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--no-proxy-server", "--disable-gpu"] });

try {
  const page = await browser.newPage();
  await page.goto(address);
  await page.fill("[name=token]", token);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation").waitFor({ timeout: 20_000 });
  console.log(await page.title());
} finally {
  await browser.close();
}
