// The host of MCP Apps: answers the pages of tools, each in a frame that can do nothing else than ask here.
// https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx
//
// A frame is `section[data-app] > iframe`; `data-app` is where its call's arguments and result are (`/given`), and where
// its requests go (`/call`, `/read`). Pages are hostile: messages are counted and bounded, and text is only ever text.
"use strict";

(() => {
  const VERSIONS = ["2026-01-26", "2025-11-21"];
  const BURST = 200;
  const PER_SECOND = 40;
  const LONGEST = 4_000_000;
  const WAITING = 8;
  const LINES = 50;
  const LONGEST_LINE = 300;
  const MOST_BLOCKED = 8;
  const SILENT_MS = 3000;
  const UNHEARD_MS = 5000;
  const CALM_MS = 500;
  const [LEAST_HEIGHT, MOST_HEIGHT] = [60, 1600];
  const UNSIZED_HEIGHT = 480; // of a page that does not say how high it is
  const METHOD_NOT_FOUND = -32601;
  const REFUSED = -32000;
  const BLOCKED = "ui/notifications/gateway-blocked"; // gateway/serving/console/watch_policy.py

  const OLDER = {
    "ui-size-change": ({ height }) => ["ui/notifications/size-changed", { height }],
    tool: ({ toolName, params }) => ["tools/call", { name: toolName, arguments: params }],
    link: ({ url }) => ["ui/open-link", { url }],
    prompt: ({ prompt }) => ["ui/message", { content: { type: "text", text: text(prompt) } }],
    intent: ({ intent, params }) => ["ui/message", { content: { type: "text", text: text({ intent, params }) } }],
    notify: ({ message }) => ["ui/message", { content: { type: "text", text: text(message) } }],
  };

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const known = new WeakMap();

  function pageOf(frame) {
    if (!known.has(frame)) known.set(frame, new Page(frame));
    return known.get(frame);
  }

  addEventListener("message", ({ source, data }) => {
    if (!source) return;
    const frame = [...document.querySelectorAll("[data-app] > iframe")].find((one) => one.contentWindow === source);
    if (frame) pageOf(frame).take(data);
  });

  /** Watch the pages that were drawn just now: of some, nothing is ever heard. */
  document.addEventListener("htmx:load", () => {
    for (const frame of document.querySelectorAll("[data-app] > iframe:not([data-watched])")) {
      frame.dataset.watched = "";
      setTimeout(() => pageOf(frame).unheard(), UNHEARD_MS);
    }
  });

  dark.addEventListener("change", () => {
    for (const frame of document.querySelectorAll("[data-app] > iframe")) {
      known.get(frame)?.send({ method: "ui/notifications/host-context-changed", params: { theme: theme() } });
    }
  });

  const theme = () => (dark.matches ? "dark" : "light");

  class Fault extends Error {
    constructor(code, message) {
      super(message);
      this.code = code;
    }
  }

  class Page {
    constructor(frame) {
      this.frame = frame;
      this.box = frame.parentElement;
      this.waiting = 0;
      this.room = BURST;
      this.since = performance.now();
      this.lines = 0;
      this.blocked = new Set();
      this.evals = 0;
    }

    /** Say that the page has spoken, which one that failed to load its parts never does. */
    connected() {
      this.hasSpoken = true;
      this.box.querySelector("[data-silent]")?.setAttribute("hidden", "");
      const count = this.box.querySelector("[data-count]");
      if (count && this.lines === 0) count.textContent = "nothing yet: it is connected, and has asked for nothing";
    }

    /** Some time has passed: make room for a page that did not ask for any, and say if it said nothing at all. */
    unheard() {
      if (!this.frame.style.height) this.frame.style.height = `${UNSIZED_HEIGHT}px`;
      const notice = this.box.querySelector("[data-silent]");
      if (notice) notice.hidden = Boolean(this.hasSpoken);
    }

    take(message) {
      if (!this.hasRoom()) return this.stop("it sent too many messages");
      const isOlder = message?.jsonrpc === undefined && Object.hasOwn(OLDER, message?.type ?? "");
      if (!isOlder && (message?.jsonrpc !== "2.0" || typeof message.method !== "string")) return;
      if (this.isTooLong(message)) return this.stop("it sent too long a message");
      if (message.method === BLOCKED) {
        // Many pages only try once whether `eval` works (zod, of the SDK for pages, does): it is told if nothing else comes.
        const isTrial = message.params?.uri === "eval" && (this.evals += 1) === 1;
        return isTrial ? setTimeout(() => this.hasSpoken || this.block(message.params), SILENT_MS) : this.block(message.params);
      }
      this.connected();
      if (isOlder) return this.takeOlder(message);
      const { id, method } = message;
      const params = typeof message.params === "object" && message.params !== null ? message.params : {};
      if (id === undefined) return this.hear(method, params);
      if (typeof id !== "string" && !Number.isSafeInteger(id)) return;
      this.answer(method, params).then(
        (result) => this.send({ id, result }),
        (error) => this.send({ id, error: { code: error.code ?? -32603, message: error.message } }),
      );
    }

    /** Messages of pages made with mcp-ui: https://mcpui.dev/guide/embeddable-ui */
    takeOlder({ type, messageId, payload }) {
      const given = typeof payload === "object" && payload !== null ? payload : {};
      const [method, params] = OLDER[type](given);
      if (method.startsWith("ui/notifications/")) return this.hear(method, params);
      const reply = (answer) => {
        if (typeof messageId !== "string" && !Number.isSafeInteger(messageId)) return;
        this.frame.contentWindow?.postMessage({ type: "ui-message-response", messageId, payload: answer }, "*");
      };
      this.answer(method, params).then(
        (response) => reply({ response }),
        (error) => reply({ error: { message: error.message } }),
      );
    }

    hasRoom() {
      const now = performance.now();
      this.room = Math.min(BURST, this.room + ((now - this.since) / 1000) * PER_SECOND);
      this.since = now;
      this.room -= 1;
      return this.room >= 0;
    }

    isTooLong(message) {
      try {
        return JSON.stringify(message).length > LONGEST;
      } catch {
        return true; // it has a circle, or numbers that JSON has not
      }
    }

    send(message) {
      // The frame has an origin of its own that nothing else has, and no name; nothing secret is sent.
      this.frame.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*");
    }

    hear(method, params) {
      if (method === "ui/notifications/initialized") {
        this.begin().catch((error) => this.tell(`was not given its data: ${error.message}`));
      } else if (method === "ui/notifications/size-changed") {
        if (!Number.isFinite(params.height)) return;
        const tall = Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, Math.ceil(params.height)));
        const border = this.frame.offsetHeight - this.frame.clientHeight;
        this.frame.style.height = `${tall + border}px`;
      } else if (method === "notifications/message") {
        this.tell(`logged: ${text(params.data)}`);
      }
    }

    /** Show what the browser has kept from the page: an origin, or a kind such as `eval`, and the directive. */
    block(params) {
      const uri = String(params?.uri ?? "");
      const where = URL.canParse(uri) && new URL(uri).origin !== "null" ? new URL(uri).origin : text(uri.split(":")[0]);
      const what = `${where} (${text(params?.directive)})`.slice(0, 200);
      const notice = this.box.querySelector("[data-blocked]");
      if (this.blocked.has(what) || this.blocked.size >= MOST_BLOCKED || !notice) return;
      this.blocked.add(what);
      notice.querySelector("span").textContent = [...this.blocked].join(", ");
      const isCode = (one) => /^(wasm-)?eval /.test(one) || /^data \((script|worker)-/.test(one);
      notice.querySelector("[data-blocked-eval]").hidden = ![...this.blocked].some(isCode);
      notice.hidden = false;
    }

    async begin() {
      if (this.hasBegun) return;
      this.hasBegun = true;
      const answer = await fetch(`${this.box.dataset.app}/given`);
      const given = await answer.json();
      if (!answer.ok) throw new Error(given.error);
      this.send({ method: "ui/notifications/tool-input", params: { arguments: given.arguments } });
      this.send({ method: "ui/notifications/tool-result", params: given.result });
    }

    async answer(method, params) {
      switch (method) {
        case "ui/initialize":
          return this.introduction(params.protocolVersion);
        case "ping":
          return {};
        case "tools/call":
          this.tell(`called ${text(params.name)}`);
          return this.ask("call", { name: params.name, arguments: params.arguments });
        case "resources/read":
          this.tell(`read ${text(params.uri)}`);
          return this.ask("read", { uri: params.uri });
        case "ui/open-link":
          return this.openLink(params.url);
        case "ui/message":
          this.tell(`said to the model: ${words(params.content)}`);
          return {};
        case "ui/update-model-context":
          this.tell(`told the model: ${words(params.content) || text(params.structuredContent)}`);
          return {};
        case "ui/request-display-mode":
          return { mode: "inline" };
        default:
          throw new Fault(METHOD_NOT_FOUND, "the console does not have this method");
      }
    }

    introduction(version) {
      const content = { text: {}, image: {}, resource: {}, resourceLink: {}, structuredContent: {} };
      return {
        protocolVersion: VERSIONS.includes(version) ? version : VERSIONS[0],
        hostInfo: { name: "mcp-gateway-console", version: "1" },
        hostCapabilities: {
          openLinks: {},
          serverTools: {},
          serverResources: {},
          logging: {},
          message: content,
          updateModelContext: content,
        },
        hostContext: {
          theme: theme(),
          displayMode: "inline",
          availableDisplayModes: ["inline"],
          containerDimensions: { width: this.frame.clientWidth, maxHeight: MOST_HEIGHT },
          locale: navigator.language,
          timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
          platform: "web",
        },
      };
    }

    async ask(what, body) {
      if (this.waiting >= WAITING) throw new Fault(REFUSED, "too many requests at a time");
      this.waiting += 1;
      try {
        const headers = { "Content-Type": "application/json", ...JSON.parse(document.body.getAttribute("hx-headers")) };
        let value = { run: null };
        for (let sent = body; "run" in value; sent = { run: value.run }) {
          const answer = await fetch(`${this.box.dataset.app}/${what}`, { method: "POST", body: JSON.stringify(sent), headers });
          value = await answer.json();
          if (!answer.ok) throw new Fault(REFUSED, [value.error, value.remedy].filter(Boolean).join("; "));
          if (value.is_asking) this.question(value.run);
        }
        return value.result;
      } catch (error) {
        this.tell(`was refused: ${error.message}`);
        throw error;
      } finally {
        this.waiting -= 1;
        if (this.waiting === 0) this.box.querySelector("[data-questions]")?.replaceChildren();
      }
    }

    /** What the server asks meanwhile is asked in the console, outside of the frame. */
    question(run) {
      const places = this.box.querySelector("[data-questions]");
      if (!places || [...places.children].some((one) => one.dataset.run === run)) return;
      const place = document.createElement("div");
      place.dataset.run = run;
      places.append(place);
      this.tell("is asked something by its server");
      htmx.ajax("GET", `${this.box.dataset.runs}${run}`, { target: place, swap: "innerHTML" });
    }

    async openLink(url) {
      const address = URL.canParse(String(url)) ? new URL(url) : null;
      const asking = this.box.querySelector(".asking");
      if (!["https:", "http:"].includes(address?.protocol) || address.href.length > 2000 || !asking.hidden) {
        this.tell(`asked to open ${text(url)}, and was refused`);
        return { isError: true };
      }
      asking.querySelector("code").textContent = address.href;
      asking.hidden = false;
      const allow = asking.querySelector("[data-open-link]");
      // Whoever was just clicking into the page has not agreed to anything.
      allow.disabled = true;
      setTimeout(() => (allow.disabled = false), CALM_MS);
      const isOpened = await new Promise((resolve) => {
        allow.onclick = () => resolve(true);
        asking.querySelector("[data-refuse-link]").onclick = () => resolve(false);
      });
      asking.hidden = true;
      if (isOpened) window.open(address.href, "_blank", "noopener,noreferrer");
      this.tell(`asked to open ${address.href}, and was ${isOpened ? "allowed to" : "refused"}`);
      return isOpened ? {} : { isError: true };
    }

    tell(what) {
      this.lines += 1;
      const count = this.box.querySelector("[data-count]");
      if (count) count.textContent = this.lines === 1 ? "1 thing" : `${this.lines} things`;
      if (this.lines > LINES) return;
      const line = document.createElement("li");
      line.textContent = text(what);
      this.box.querySelector(".doings ol")?.append(line);
    }

    stop(why) {
      const told = document.createElement("p");
      told.className = "problem";
      told.textContent = `This page was stopped: ${why}.`;
      this.frame.replaceWith(told);
      this.tell(`was stopped: ${why}`);
    }
  }

  /** A value as a short line of text, without characters that could disguise it. */
  function text(value) {
    const said = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
    return (said.length > LONGEST_LINE ? `${said.slice(0, LONGEST_LINE)}…` : said).replace(/[\p{Cc}\p{Cf}]/gu, " ");
  }

  function words(content) {
    const blocks = Array.isArray(content) ? content : content ? [content] : [];
    return blocks.slice(0, 20).map((block) => (typeof block?.text === "string" ? block.text : `[${text(block?.type)}]`)).join(" ");
  }
})();
