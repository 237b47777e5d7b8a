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
