"use strict";
// The charts about distances, features and learning.
const chosen = { first: 0, second: Math.min(1, policies.length - 1), measure: 0, feature: null, learner: policies.length - 1 };
const labels = policies.map((policy) => policy.label);
const short = policies.map((policy) => String(policy.index + 1));
const pairOf = (i, j) => content.certificate?.pairs.find((pair) => (pair.first === i && pair.second === j) || (pair.first === j && pair.second === i));

function matrixOptions() {
  const matrix = content.matrices[chosen.measure].values;
  const values = matrix.flat();
  const cells = matrix.flatMap((row, i) => row.map((value, j) => [j, i, value]));
  const marked = [[chosen.second, chosen.first], [chosen.first, chosen.second]];
  const dark = theme() === "dark";
  return {
    grid: { left: 34, right: 8, top: 8, bottom: 74 },
    tooltip: { formatter: (params) => {
      const [x, y, value] = cellOf(params);
      return `${labels[y]} and ${labels[x]}<br><b>${number(value)}</b>`;
    } },
    xAxis: { type: "category", data: short, splitLine: { show: false } },
    yAxis: { type: "category", data: short, inverse: true, splitLine: { show: false } },
    visualMap: {
      min: Math.min(...values), max: Math.max(...values) || 1e-9, calculable: false, orient: "horizontal", left: "center", bottom: 4, itemHeight: 150,
      text: ["far", "near"], textStyle: { color: css("--soft") },
      inRange: { color: dark ? ["#1b2433", "#27508f", "#4d8fe0", "#b8dcff"] : ["#f1f5fc", "#a9c8f0", "#4a86d8", "#123f86"] },
    },
    series: [{
      type: "heatmap", data: cells.map((cell) => ({
        value: cell,
        itemStyle: { borderColor: marked.some(([x, y]) => x === cell[0] && y === cell[1] && x !== y) ? css("--ink") : css("--panel"), borderWidth: 2, borderRadius: 4 },
      })),
      label: { show: policies.length <= 6, formatter: ({ data }) => number(data.value[2]), fontSize: 11, color: "auto" },
      emphasis: { itemStyle: { shadowBlur: 6, shadowColor: "#0005" } },
    }],
  };
}
const cellOf = (params) => params.data.value;

function heatOptions(index) {
  const shares = plane.heatmaps[index];
  const bins = shares.length;
  const top = Math.sqrt(Math.max(...plane.heatmaps.flat(2)));
  const dark = theme() === "dark";
  const cells = shares.flatMap((column, x) => column.flatMap((share, y) => share > 0 ? [[x, y, Math.sqrt(share) / top]] : []));
  const ticks = Array.from({ length: bins }, (_, i) => i);
  const bare = { type: "category", data: ticks, show: false };
  return (drawn) => {
    // The plane's own proportions, as large as there is room for.
    const [[left, right], [low, high]] = plane.heatBounds;
    const ratio = plane.kind === "projection" ? drawn.getWidth() / drawn.getHeight() : (right - left) / (high - low);
    const room = [drawn.getWidth() - 20, drawn.getHeight() - 20];
    const width = Math.min(room[0], room[1] * Math.min(3, Math.max(0.33, ratio)));
    const height = Math.min(room[1], width / Math.min(3, Math.max(0.33, ratio)));
    return {
      grid: { left: (drawn.getWidth() - width) / 2, top: (drawn.getHeight() - height) / 2, width, height },
      xAxis: bare, yAxis: bare,
      visualMap: { show: false, min: 0, max: 1, inRange: { color: dark ? ["#171d27", colour(index), "#ffffff"] : ["#ffffff", colour(index), "#1b1b2a"] } },
      series: [{ type: "heatmap", silent: true, data: cells, progressive: 0 }],
    };
  };
}

// Wasserstein-1 distance of each feature, in standard deviations, from the policies' quantiles.
function differences(i, j) {
  const { names, scale, quantiles } = content.features;
  return names.map((name, f) => {
    const [own, other] = [quantiles[i][f], quantiles[j][f]];
    const shift = own.reduce((sum, q, n) => sum + (other[n] - q), 0) / own.length;
    const distance = own.reduce((sum, q, n) => sum + Math.abs(other[n] - q), 0) / own.length;
    return { f, name, distance: scale[f] > 0 ? distance / scale[f] : 0, shift };
  }).sort((a, b) => b.distance - a.distance);
}

function differenceOptions() {
  const top = differences(chosen.first, chosen.second).slice(0, 10).reverse();
  return {
    grid: { left: 8, right: 56, top: 4, bottom: 26, containLabel: true },
    tooltip: { formatter: ({ data }) => `${escapeHTML(data.name)}: ${number(data.value)} standard deviations` },
    xAxis: { type: "value", name: "", axisLabel: { formatter: (v) => `${v} σ` } },
    yAxis: { type: "category", data: top.map((d) => d.name), axisLabel: { width: 130, overflow: "truncate", color: css("--ink") } },
    series: [{
      type: "bar", barMaxWidth: 20, data: top.map((d) => ({
        value: d.distance, name: d.name, feature: d.f,
        itemStyle: { color: css("--accent"), opacity: d.f === chosen.feature ? 1 : 0.5, borderRadius: [0, 5, 5, 0] },
      })),
      label: { show: true, position: "right", opacity: 1, color: css("--soft"), formatter: ({ value }) => number(value) },
    }],
  };
}

function distributionOptions() {
  const f = chosen.feature;
  const { histograms, range } = content.features;
  const bins = histograms[0][f].length;
  const edge = (n) => range[0][f] + (range[1][f] - range[0][f]) * n / bins;
  const steps = (index) => histograms[index][f].flatMap((share, n) => [[edge(n), share], [edge(n + 1), share]]);
  return {
    grid: { left: 46, right: 12, top: 30, bottom: 26 },
    legend: { top: 0, textStyle: { color: css("--ink") }, icon: "roundRect" },
    tooltip: { trigger: "axis", valueFormatter: percent },
    xAxis: { type: "value", min: edge(0), max: edge(bins), splitLine: { show: false }, axisLabel: { formatter: number } },
    yAxis: { type: "value", axisLabel: { formatter: percent } },
    series: [...new Set([chosen.first, chosen.second])].map((index) => ({
      type: "line", name: labels[index], symbol: "none", data: steps(index), color: colour(index),
      lineStyle: { width: 2 }, areaStyle: { opacity: 0.22 },
    })),
  };
}

function intervalOptions() {
  const { pairs } = content.certificate;
  const sorted = [...pairs].sort((a, b) => a.distance - b.distance);
  const names = sorted.map((pair) => `${pair.first + 1} – ${pair.second + 1}`);
  const tone = (pair) => css(pair.distinct ? "--good" : "--warn");
  return {
    grid: { left: 64, right: 18, top: 8, bottom: 40 },
    tooltip: { formatter: ({ dataIndex }) => {
      const pair = sorted[dataIndex];
      return `${labels[pair.first]} and ${labels[pair.second]}<br><b>${number(pair.distance)}</b> (${number(pair.low)} to ${number(pair.high)}), limit ${number(pair.limit)}: ${pair.verdict}`;
    } },
    xAxis: { type: "value", min: (v) => Math.min(0, Math.floor(10 * v.min) / 10), max: (v) => Math.min(1, Math.ceil(11 * v.max) / 10), name: "distance, its 95 % interval, and its limit", nameLocation: "middle", nameGap: 26 },
    yAxis: { type: "category", data: names, axisLabel: { color: css("--ink"), interval: 0 } },
    series: [
      { type: "custom", data: sorted.map((pair, n) => [pair.low, n, pair.high]), encode: { x: [0, 2], y: 1 }, renderItem: (params, api) => {
        const [x0, y] = api.coord([api.value(0), api.value(1)]);
        const [x1] = api.coord([api.value(2), api.value(1)]);
        return { type: "line", shape: { x1: x0, y1: y, x2: Math.max(x1, x0 + 1), y2: y }, style: { stroke: tone(sorted[params.dataIndex]), lineWidth: 5, lineCap: "round", opacity: 0.45 } };
      } },
      { type: "scatter", symbolSize: 9, data: sorted.map((pair, n) => ({ value: [pair.distance, n], itemStyle: { color: tone(pair) } })) },
      { type: "scatter", silent: true, symbol: "rect", symbolSize: [2, 18], itemStyle: { color: css("--soft") }, data: sorted.map((pair, n) => [pair.limit, n]) },
    ],
  };
}

// One line per try: a fresh start is no continuation.
const points = (curve, name) => curve[name].map((value, n) =>
  n && curve.attempt && curve.attempt[n] !== curve.attempt[n - 1] ? [curve.frames[n], null] : [curve.frames[n], value]);
const frames = (value) => value >= 1e6 ? `${+(value / 1e6).toFixed(1)}M` : value >= 1e3 ? `${Math.round(value / 1e3)}k` : value;

function curveOptions(series, extra = {}) {
  return {
    grid: { left: 52, right: 12, top: 32, bottom: 26 },
    legend: { top: 0, type: "plain", textStyle: { color: css("--ink"), fontSize: 11 }, itemWidth: 14, itemGap: 8, icon: "roundRect" },
    tooltip: { trigger: "axis", valueFormatter: number },
    xAxis: { type: "value", axisLabel: { formatter: frames }, splitLine: { show: false } },
    yAxis: { type: "value", scale: true, axisLabel: { formatter: number }, ...extra },
    series: series.map((own) => ({ type: "line", symbol: "circle", showSymbol: own.data.length < 3, symbolSize: 5, lineStyle: { width: 2 }, ...own })),
  };
}

const learned = policies.filter((policy) => policy.curve?.frames);
const byPolicy = (name) => learned.filter((policy) => policy.curve[name])
  .map((policy) => ({ name: short[policy.index], color: colour(policy.index), data: points(policy.curve, name) }));
function byConstraint(name) {
  const { curve } = policies[chosen.learner];
  return Object.keys(curve ?? {}).filter((key) => key.startsWith(`${name}_`)).map((key) => {
    const earlier = +key.slice(name.length + 1) - 1;
    return { name: `to ${earlier + 1}`, color: colour(earlier), data: points(curve, key) };
  });
}
function distanceCurves() {
  const series = byConstraint("distance");
  if (series.length && content.threshold !== null) {
    series[0].markLine = { silent: true, symbol: "none", data: [{ yAxis: content.threshold }], lineStyle: { type: "dashed", color: css("--soft") }, label: { formatter: "threshold", position: "insideEndTop", color: css("--soft") } };
  }
  return curveOptions(series);
}
