"use strict";
// Content, colours and the charts' shared manners.
const content = JSON.parse(document.getElementById("content").textContent);
const $ = (id) => document.getElementById(id);
const policies = content.policies.map((policy, index) => ({ ...policy, index, label: `Policy ${index + 1}` }));

// Told apart by colour-blind readers too (after Okabe and Ito); lighter ones on dark ground.
const PALETTES = {
  light: ["#0072b2", "#d55e00", "#009e73", "#c25a93", "#b98a00", "#3aa5dd", "#7a4fd0", "#9a4a3c", "#5d7f2a", "#6b7280"],
  dark: ["#4fb0ee", "#ff8a3d", "#3ddbab", "#f08cc0", "#f2c14e", "#8fd6ff", "#b59bff", "#e59a8a", "#a9cf6a", "#a8b0bd"],
};
const colour = (index) => PALETTES[theme()][index % 10];
const theme = () => document.documentElement.dataset.theme;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const number = (value) => value === null || value === undefined ? "–"
  : Math.abs(value) >= 1000 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : String(+value.toPrecision(3));
const percent = (value) => value === null || value === undefined ? "–" : `${Math.round(100 * value)} %`;
const escapeHTML = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// Every chart is a function that returns its options; a change of theme or size asks again.
const charts = new Map();
function chart(id, options, onClick) {
  const node = typeof id === "string" ? $(id) : id;
  const drawn = echarts.init(node, null, { renderer: "canvas" });
  const entry = { drawn, draw: () => drawn.setOption(base(options(drawn)), { notMerge: true }) };
  charts.set(node, entry);
  entry.draw();
  if (onClick) drawn.on("click", onClick);
  new ResizeObserver(() => { drawn.resize(); entry.draw(); }).observe(node);
  return entry;
}
const redraw = (...ids) => ids.forEach((id) => charts.get($(id))?.draw());

function base(options) {
  const axis = (own) => ({
    axisLine: { lineStyle: { color: css("--line") } }, axisTick: { show: false },
    splitLine: { lineStyle: { color: css("--line") } },
    nameTextStyle: { color: css("--soft") }, ...own,
    axisLabel: { color: css("--soft"), fontSize: 11, hideOverlap: true, ...own.axisLabel },
  });
  const all = (axes) => axes && (Array.isArray(axes) ? axes : [axes]).map(axis);
  return {
    animation: false,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: css("--ink") },
    ...options,
    tooltip: options.tooltip && {
      confine: true, backgroundColor: css("--panel"), borderColor: css("--line"),
      textStyle: { color: css("--ink"), fontSize: 12.5 }, ...options.tooltip,
    },
    ...(options.xAxis && { xAxis: all(options.xAxis), yAxis: all(options.yAxis) }),
  };
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "☀" : "☾";
  document.querySelectorAll("[data-policy]").forEach((node) => {
    node.style.setProperty("--colour", colour(+node.dataset.policy));
  });
  charts.forEach((entry) => entry.draw());
}
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
document.documentElement.dataset.theme = prefersDark.matches ? "dark" : "light";
prefersDark.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
$("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
