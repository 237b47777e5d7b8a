// A host of MCP Apps: shows the pages of tools in frames, with the extension's own module for hosts. Its connection to
// the gateway, as one of several real hosts by name, is kept by whoever serves this page (../test_apps.py).
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const PATIENCE_MS = 30_000;
const PAGE_TYPE = "text/html;profile=mcp-app";

/** What is done on each page: when it shows the data that it was opened with, the button, when that has worked. */
const PAGES = {
  "get-time": {
    shows: (page) => page.querySelector("#server-time").textContent,
    button: "#get-time-btn",
    calls: "get-time",
    isData: (shown) => /^\d{4}-\d\d-\d\dT/.test(shown),
    isAnswered: (shown, before) => shown !== before && !shown.includes("ERROR"),
  },
  daylight: {
    shows: (page) => page.body.innerText,
    button: "button[value='2']",
    calls: "days_of_month",
    isData: (shown) => shown.includes("Hours of daylight at 52.5°"),
    isAnswered: (shown) => /February: 1\. .* 28\. /.test(shown),
  },
  "debug-tool": {
    shows: (page) => page.querySelector("#event-log").textContent,
    button: "#call-debug-refresh-btn",
    calls: "debug-refresh",
    isData: (shown) => /structuredContent/.test(shown),
    isAnswered: (shown) => shown.includes("server-tool-result"),
  },
};

async function post(path, body) {
  const response = await fetch(path, { method: "POST", body: JSON.stringify(body) });
  return response.json();
}

function requests(host) {
  return async (method, params = {}) => {
    const { result, error } = await post("/request", { host, method, params });
    if (error) throw new Error(error);
    return result;
  };
}

/** The first value that counts; looked for whenever anything on the page changes. */
function until(page, find, what) {
  return new Promise((resolve, reject) => {
    const observer = new MutationObserver(look);
    const late = setTimeout(() => done(reject, new Error(`${what}; shown: ${page.body.innerText}`)), PATIENCE_MS);
    function done(settle, value) {
      observer.disconnect();
      clearTimeout(late);
      settle(value);
    }
    function look() {
      const found = find();
      if (found !== undefined) done(resolve, found);
    }
    observer.observe(page, { subtree: true, childList: true, characterData: true });
    look();
  });
}

/** Opens a tool as a host does: reads its page, calls it, shows the page in a frame, hands it the result. */
async function open(host, tool, tools, request) {
  const { contents } = await request("resources/read", { uri: tool._meta.ui.resourceUri });
  if (contents[0].uri !== tool._meta.ui.resourceUri || contents[0].mimeType !== PAGE_TYPE) {
    throw new Error(`not the page of ${tool.name}: ${contents[0].uri}`);
  }
  const result = await request("tools/call", { name: tool.name, arguments: {} });
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts allow-same-origin");
  document.body.append(frame);
  const bridge = new AppBridge(null, { name: host.name, version: "1" }, { serverTools: {}, serverResources: {} });
  const calls = [];
  bridge.oncalltool = async ({ name, arguments: values }) => {
    // Some hosts look a page's calls up in the list of tools that they have (PrefectHQ/fastmcp#5042).
    if (host.onlyListed && !tools.some((one) => one.name === name)) throw new Error(`Tool not found: ${name}`);
    const answer = await request("tools/call", { name, arguments: values ?? {} });
    calls.push({ name, answer });
    return answer;
  };
  bridge.onreadresource = ({ uri }) => request("resources/read", { uri });
  const initialized = new Promise((resolve) => (bridge.oninitialized = resolve));
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
  frame.srcdoc = contents[0].text;
  await loaded;
  await initialized;
  await bridge.sendToolInput({ arguments: {} });
  await bridge.sendToolResult(result);
  return { page: frame.contentDocument, result, calls, frame, bridge };
}

async function tried(host, tool, tools, request) {
  const { shows, button, isData, isAnswered, calls: called } = PAGES[tool.name.split("__").at(-1)];
  const { page, result, calls, frame, bridge } = await open(host, tool, tools, request);
  const data = () => (isData(shows(page)) ? shows(page) : undefined);
  const before = await until(page, data, `${tool.name}: no data`);
  page.querySelector(button).click();
  const after = await until(
    page,
    () => (calls.some((call) => call.name === called) && isAnswered(shows(page), before) ? shows(page) : undefined),
    `${tool.name}: the button did nothing`,
  );
  await bridge.close();
  frame.remove();
  return { before, after, result, calls };
}

async function play(host) {
  const request = requests(host.name);
  const { tools } = await request("tools/list");
  const pages = {};
  for (const tool of tools.filter((one) => one._meta?.ui?.resourceUri && one.name.includes("__"))) {
    if (!(tool._meta.ui.visibility ?? ["model"]).includes("model")) continue;
    pages[tool.name] = await tried(host, tool, tools, request);
  }
  return { tools, pages };
}

const hosts = await (await fetch("/hosts")).json();
const told = {};
for (const host of hosts) {
  told[host.name] = await play(host).catch((error) => ({ error: String(error?.stack ?? error) }));
}
await post("/done", told);
