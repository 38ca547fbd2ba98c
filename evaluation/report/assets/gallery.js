"use strict";
// The page: tiles, cards, and what a choice changes.
const mean = (values) => values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
const nearest = policies.map(({ index }) => policies.filter((other) => other.index !== index)
  .map((other) => ({ index: other.index, distance: content.matrices[0].values[index][other.index] }))
  .sort((a, b) => a.distance - b.distance)[0]);

function fillHeader() {
  $("title").textContent = content.env ? `${policies.length} ways through ${content.env}` : `${policies.length} policies`;
  $("subtitle").textContent = `${content.run} · shown and judged on ${content.origin}`;
  const known = (name) => policies.map((policy) => policy[name]).filter((value) => value !== null && value !== undefined);
  const tiles = [];
  if (content.certificate) tiles.push(["distinct strategies", `${content.certificate.strategies.length}`, ` of ${policies.length}`]);
  if (content.score) tiles.push([content.score.name, `${content.score.value}`, ""]);
  tiles.push(["mean return", number(mean(known("return"))), ""], ["mean success", percent(mean(known("success"))), ""]);
  if (learned.length) tiles.push(["frames to learn them", frames(learned.reduce((sum, p) => sum + p.curve.frames.at(-1), 0)), ""]);
  tiles.forEach(([name, value, more]) => $("tiles").append(element("div", { className: "tile" },
    element("dt", { textContent: name }), element("dd", { textContent: value }, element("small", { textContent: more })))));
}

function twins(index) {
  return (content.certificate?.pairs ?? []).filter((pair) => !pair.distinct && [pair.first, pair.second].includes(index))
    .map((pair) => (pair.first === index ? pair.second : pair.first) + 1);
}

function makeCard(policy) {
  const { index, label } = policy;
  const view = policy.clip ? clipOf(policy) : element("div", { className: "view" });
  const heading = element("h3", {}, element("span", { className: "dot" }), label);
  const figures = element("dl", { className: "figures" },
    element("div", {}, element("dt", { textContent: "return" }), element("dd", { textContent: number(policy.return) })),
    element("div", {}, element("dt", { textContent: "success" }), element("dd", { textContent: percent(policy.success) })));
  const same = twins(index);
  const text = policy.won === 0 ? `won none of ${policy.episodes} episodes`
    : same.length ? `not distinguishable from ${same.join(", ")}`
      : nearest[index] ? `nearest: policy ${nearest[index].index + 1}, at ${number(nearest[index].distance)}` : "";
  const note = element("p", { className: `note ${policy.won === 0 || same.length ? "warn" : content.certificate ? "good" : ""}`, textContent: text });
  const picks = element("div", { className: "picks" }, ...["first", "second"].map((place) => {
    const button = element("button", { type: "button", textContent: place === "first" ? "compare" : "with" });
    button.dataset.place = place;
    button.addEventListener("click", () => choose(place, index));
    return button;
  }));
  const card = element("article", { className: "panel card" }, view, element("div", { className: "body" }, heading, figures, note, picks));
  card.dataset.policy = index;
  return card;
}

function clipOf(policy) {
  if (policy.clip.startsWith("data:image/")) return element("img", { src: policy.clip, alt: `Clip of ${policy.label}` });
  return element("video", { src: policy.clip, controls: true, loop: true, muted: true, playsInline: true, preload: "metadata" });
}

function sortCards(by) {
  const keys = {
    order: (p) => p.index, return: (p) => -(p.return ?? -Infinity), success: (p) => -(p.success ?? -Infinity),
    distance: (p) => -(nearest[p.index]?.distance ?? -Infinity),
  };
  const order = [...policies].sort((a, b) => keys[by](a) - keys[by](b) || a.index - b.index);
  $("cards").append(...order.map((policy) => document.querySelector(`.card[data-policy="${policy.index}"]`)));
}

function choose(place, index) {
  const other = place === "first" ? "second" : "first";
  if (chosen[other] === index && policies.length > 1) chosen[other] = chosen[place];
  chosen[place] = index;
  showPair();
}

function showPair() {
  const { first, second } = chosen;
  $("first").value = first;
  $("second").value = second;
  document.querySelectorAll(".picks button").forEach((button) => {
    const own = +button.closest(".card").dataset.policy;
    button.setAttribute("aria-pressed", String(own === chosen[button.dataset.place]));
  });
  const pair = pairOf(first, second);
  $("verdict").replaceChildren(...(pair ? [
    element("strong", { textContent: `${labels[first]} and ${labels[second]}: ${pair.verdict}` }),
    `. Their distance is ${number(pair.distance)}, with 95 % confidence between ${number(pair.low)} and ${number(pair.high)}.`,
  ] : [`${labels[first]} and ${labels[second]}`]));
  if (content.features) {
    chosen.feature = differences(first, second)[0].f;
    showFeature();
  }
  redraw("matrix");
}

function showFeature() {
  $("feature-title").textContent = `Distribution of “${content.features.names[chosen.feature]}”`;
  redraw("differences", "distribution");
}

function options(select, names, selected) {
  $(select).append(...names.map((textContent, value) => element("option", { textContent, value })));
  $(select).value = selected;
}

function fillDistances() {
  options("measure", content.matrices.map((matrix) => matrix.name.replace("_", " ")), 0);
  const show = () => {
    chosen.measure = +$("measure").value;
    $("measure-about").textContent = `${content.matrices[chosen.measure].about}. Choose a cell to compare two policies.`;
    redraw("matrix");
  };
  $("measure").addEventListener("change", show);
  chart("matrix", matrixOptions, (event) => {
    const [x, y] = cellOf(event);
    if (x !== y) { Object.assign(chosen, { first: y, second: x }); showPair(); }
  });
  show();
}

function fillComparison() {
  options("first", labels, chosen.first);
  options("second", labels, chosen.second);
  ["first", "second"].forEach((place) => $(place).addEventListener("change", (event) => choose(place, +event.target.value)));
  $("swap").addEventListener("click", () => { [chosen.first, chosen.second] = [chosen.second, chosen.first]; showPair(); });
  $("compare").hidden = policies.length < 2;
  if (policies.length < 2) return;
  if (content.features) {
    chosen.feature = differences(chosen.first, chosen.second)[0].f;
    chart("differences", differenceOptions, (event) => { chosen.feature = event.data.feature; showFeature(); });
    chart("distribution", distributionOptions);
  } else {
    document.querySelector("#compare .pair").hidden = true;
  }
  showPair();
}

function fillCertificate() {
  const pairs = content.certificate?.pairs ?? [];
  $("certificate").hidden = !pairs.length;
  if (!pairs.length) return;
  const { strategies } = content.certificate;
  $("certificate-about").textContent = `Two policies are distinct if their distance on ${content.origin} is above its limit, with its whole interval. `
    + `The largest set of policies that are all distinct from each other: ${strategies.map((index) => index + 1).join(", ")}.`;
  $("intervals").style.height = `${70 + 24 * pairs.length}px`;
  chart("intervals", intervalOptions);
}

function fillLearning() {
  $("learning").hidden = !learned.length;
  if (!learned.length) return;
  options("learner", labels, chosen.learner);
  const constraints = ["curve-distance", "curve-multiplier"];
  $("learner").addEventListener("change", (event) => { chosen.learner = +event.target.value; redraw(...constraints); });
  chart("curve-return", () => curveOptions(byPolicy("return")));
  chart("curve-success", () => curveOptions(byPolicy("success"), { min: 0, max: 1, axisLabel: { formatter: percent } }));
  chart("curve-distance", distanceCurves);
  chart("curve-multiplier", () => curveOptions(byConstraint("multiplier"), { min: 0 }));
}

fillHeader();
startPlayer();
policies.forEach((policy) => $("cards").append(makeCard(policy)));
setTheme(theme());
document.querySelectorAll(".card .view").forEach((node) => {
  const index = +node.parentElement.dataset.policy;
  chart(node, (drawn) => heatOptions(index)(drawn));
});
$("sort").addEventListener("change", (event) => sortCards(event.target.value));
fillDistances();
fillComparison();
fillCertificate();
fillLearning();
$("settings").textContent = JSON.stringify(content.settings, null, 2);
