// What pages cannot do by themselves: enlarge pictures, draw waveforms, switch between sides, add a host to compare.
"use strict";

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const zoom = target?.closest("[data-zoom]");
  if (zoom) return enlarge(zoom.querySelector("img"));
  target?.closest("[data-close]")?.closest("article")?.remove();
  const copy = target?.closest("[data-copy]");
  if (copy) copyText(copy).catch(() => (copy.textContent = "Select it, and copy it by hand"));
  const tab = target?.closest("[data-tabs] [role=tab]");
  if (tab) select(tab);
});

document.addEventListener("input", (event) => {
  const slide = event.target instanceof Element ? event.target.closest("[data-slide]") : null;
  slide?.style.setProperty("--at", `${event.target.value}%`);
});

document.addEventListener("keydown", (event) => {
  const tab = event.target instanceof Element ? event.target.closest("[data-tabs] [role=tab]") : null;
  if (!tab || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
  const tabs = [...tab.parentElement.querySelectorAll("[role=tab]")];
  const step = event.key === "ArrowRight" ? 1 : tabs.length - 1;
  const next = tabs[(tabs.indexOf(tab) + step) % tabs.length];
  select(next);
  next.focus();
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.dataset.chooser) return;
  event.preventDefault();
  const host = new FormData(form).get("host");
  const compared = document.getElementById("compared");
  htmx.ajax("GET", form.dataset.chooser + encodeURIComponent(host), { target: compared, swap: "afterbegin" });
});

async function copyText(button) {
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
}

function select(tab) {
  for (const other of tab.parentElement.querySelectorAll("[role=tab]")) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
  }
}

function enlarge(image) {
  const dialog = document.getElementById("zoomed");
  if (!dialog || !image) return;
  const copy = document.createElement("img");
  copy.src = image.currentSrc || image.src;
  copy.alt = image.alt;
  dialog.querySelector(".frame").replaceChildren(copy);
  dialog.showModal();
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    seen.unobserve(entry.target);
    drawWaveform(entry.target).catch(() => entry.target.remove());
  }
});

function watch(root) {
  for (const canvas of root.querySelectorAll("canvas[data-waveform]")) seen.observe(canvas);
}

document.addEventListener("DOMContentLoaded", () => watch(document));
document.addEventListener("htmx:afterSwap", () => watch(document));

async function drawWaveform(canvas) {
  const answer = await fetch(canvas.dataset.waveform);
  if (!answer.ok) throw new Error("no sound");
  const context = new OfflineAudioContext(1, 1, 44100);
  const sound = (await context.decodeAudioData(await answer.arrayBuffer())).getChannelData(0);
  const width = (canvas.width = canvas.clientWidth * devicePixelRatio);
  const height = (canvas.height = canvas.clientHeight * devicePixelRatio);
  const pen = canvas.getContext("2d");
  pen.fillStyle = getComputedStyle(canvas).color;
  const columns = Math.floor(width / 3);
  const step = Math.max(1, Math.floor(sound.length / columns));
  for (let column = 0; column < columns; column += 1) {
    let peak = 0;
    for (let at = column * step; at < Math.min((column + 1) * step, sound.length); at += 1) {
      peak = Math.max(peak, Math.abs(sound[at]));
    }
    const tall = Math.max(2, peak * height);
    pen.fillRect(column * 3, (height - tall) / 2, 2, tall);
  }
}

// Try: what forms of schemas need beyond controls. Parts that are not given are disabled, so they are not sent.

document.addEventListener("change", (event) => {
  const control = event.target;
  if (!(control instanceof HTMLElement)) return;
  if (control.matches("[data-optional]")) {
    give(control.closest("fieldset").querySelector(":scope > [data-part]"), control.checked);
  } else if (control.matches("[data-union]")) {
    for (const branch of control.parentElement.querySelectorAll(":scope > [data-branch]")) {
      give(branch, branch.dataset.branch === control.value);
    }
  } else if (control.matches("input[data-upload]")) {
    upload(control);
  }
});

function give(part, given) {
  part.disabled = part.hidden = !given;
}

let rows = 1000;

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-add], [data-remove]") : null;
  if (!button) return;
  if (button.matches("[data-remove]")) {
    const list = button.closest("[data-rows]");
    button.closest("[data-row]").remove();
    return list.parentElement.querySelector(":scope > [data-add]")?.focus();
  }
  const list = button.parentElement.querySelector(":scope > [data-rows]");
  const template = button.parentElement.querySelector(":scope > template");
  rows += 1;
  const made = document.createElement("template");
  made.innerHTML = template.innerHTML.replaceAll(template.dataset.mark, `~r${rows}`);
  const row = made.content.firstElementChild;
  list.append(made.content);
  row.querySelector("input:not([type=hidden]), select, textarea")?.focus();
});

async function upload(control) {
  const [file] = control.files;
  const told = control.parentElement.querySelector(".told");
  const target = control.closest(".field").querySelector("input[type=text], textarea");
  if (!file || !target) return;
  told.textContent = `storing ${file.name} …`;
  const address = `${control.dataset.upload}?name=${encodeURIComponent(file.name)}`;
  const headers = { ...JSON.parse(document.body.getAttribute("hx-headers")) };
  if (file.type) headers["Content-Type"] = file.type;
  try {
    const answer = await fetch(address, { method: "POST", body: file, headers });
    const stored = await answer.json();
    if (!answer.ok) throw new Error([stored.error, stored.remedy].filter(Boolean).join("; "));
    target.value = stored.handle;
    told.textContent = `${file.name} is stored as ${stored.handle}`;
  } catch (error) {
    told.textContent = `${file.name} was not stored: ${error.message}`;
  }
  control.value = "";
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const form = event.target instanceof Element ? event.target.closest("form.try") : null;
  for (const wrong of form?.querySelectorAll(".wrong") ?? []) wrong.textContent = "";
});

document.addEventListener("htmx:afterSettle", () => {
  for (const mistake of document.querySelectorAll("[data-mistakes]:not([data-placed]) [data-at]")) {
    const places = document.querySelectorAll("form.try [data-place]");
    const place = mistake.dataset.at && [...places].find((one) => one.dataset.place === mistake.dataset.at);
    const wrong = place?.querySelector(":scope > .wrong");
    if (wrong) wrong.textContent = mistake.lastChild.textContent.trim();
  }
  for (const list of document.querySelectorAll("[data-mistakes]")) list.dataset.placed = "";
});
