"use strict";
// Episodes as moving points: faint whole paths, and what was walked of them until now.
const player = { time: 1, playing: false, shown: new Set(policies.map((p) => p.index)), last: 0 };
const plane = content.plane;
const longest = Math.max(...plane.paths.flat().map((path) => path.points.length));

const pitch = plane.kind === "football";

// The bounds, widened so that lengths across and up are in proportion.
function view(width, height, bounds, aspect = 1) {
  let [[left, right], [low, high]] = bounds;
  const unit = Math.max((right - left) / width, (high - low) * aspect / height) * (pitch ? 1.12 : 1.04);
  const [x, y] = [(left + right) / 2, (low + high) / 2];
  const tall = unit * height / aspect;
  return { x: [x - unit * width / 2, x + unit * width / 2], y: [y - tall / 2, y + tall / 2] };
}

// All policies are in the same series: few large ones are drawn faster than many small ones.
const visible = () => policies.filter((policy) => player.shown.has(policy.index));
const everyPath = (make) => visible().flatMap(({ index, label }) => plane.paths[index].flatMap((path) => make(path, index, label)));
const stepAt = (path, until) => Math.min(path.points.length - 1, Math.round(until * (longest - 1)));

function lines(until, style) {
  return everyPath((path, index) => {
    const steps = Math.max(2, stepAt(path, until) + 1);
    return path.points[0].map((_, agent) => ({
      coords: path.points.slice(0, steps).filter((_, t) => !path.alive || path.alive[t][agent]).map((points) => points[agent]),
      lineStyle: { color: colour(index), ...style },
    })).filter((line) => line.coords.length > 1);
  });
}

// In battles the dead stay where they fell, faded.
const heads = (until) => everyPath((path, index, name) => {
  const step = stepAt(path, until);
  const lives = (agent) => !path.alive || path.alive[step][agent];
  return path.points[step].map((value, agent) => ({ name, value, agent, itemStyle: { color: colour(index), opacity: lives(agent) ? 1 : 0.25 } }))
    .filter(({ agent }) => path.enemies || lives(agent));
});

const enemies = (until) => everyPath((path, index, label) => {
  const step = stepAt(path, until);
  return (path.enemies?.[step] ?? []).map((value, enemy) => ({
    name: `${label}: enemy`, value,
    itemStyle: { borderColor: colour(index), opacity: path.enemyAlive[step][enemy] ? 1 : 0.2 },
  }));
});

const balls = (until) => everyPath((path) => path.ball ? [path.ball[Math.min(path.ball.length - 1, stepAt(path, until))]] : []);
const ballWays = (until) => everyPath((path) => path.ball ? [{ coords: path.ball.slice(0, Math.max(2, stepAt(path, until) + 1)) }] : []);

// What moves, by the names under which the chart knows it.
const moving = () => [
  { id: "walked", data: lines(player.time, { width: plane.paths[0].length > 4 ? 1.6 : 2.2, opacity: 0.75 }) },
  { id: "heads", data: heads(player.time) },
  { id: "ballWays", data: ballWays(player.time) },
  { id: "balls", data: balls(player.time) },
  { id: "enemies", data: enemies(player.time) },
];

// Walls around free ground, and cliffs in it.
function battlefield() {
  const [[left, right], [low, high]] = plane.bounds;
  const kinds = [[[[left, low, right, high]], { fill: css("--line") }], [plane.ground, { fill: css("--panel") }],
    [plane.cliff, { fill: css("--soft"), opacity: 0.35 }]];
  return {
    type: "custom", silent: true, z: 1, data: [[left, low]], renderItem: (_, api) => ({
      type: "group", children: kinds.flatMap(([rectangles, style]) => rectangles.map(([x0, y0, x1, y1]) => {
        const [[a, b], [c, d]] = [api.coord([x0, y1]), api.coord([x1, y0])];
        return { type: "rect", shape: { x: a, y: b, width: c - a, height: d - b }, style };
      })),
    }),
  };
}

function scenery() {
  const line = { stroke: css("--line"), fill: "none", lineWidth: 1.5 };
  if (plane.ground) return battlefield();
  if (plane.kind === "navigation") {
    const items = plane.landmarks.map((place, index) => ({ place, letter: String.fromCharCode(65 + index) }));
    return {
      type: "custom", silent: true, z: 1, data: items.map((item) => item.place), renderItem: (_, api) => {
        const at = [api.value(0), api.value(1)];
        const [x, y] = api.coord(at);
        const index = items.findIndex((item) => item.place[0] === at[0] && item.place[1] === at[1]);
        const r = api.size([plane.radius, 0])[0];
        return { type: "group", children: [
          { type: "circle", shape: { cx: x, cy: y, r: 1.5 * r }, style: { ...line, lineDash: [3, 4] } },
          { type: "circle", shape: { cx: x, cy: y, r }, style: { fill: css("--wash"), stroke: css("--soft"), lineWidth: 1.2 } },
          { type: "text", style: { text: items[index]?.letter ?? "", x, y, fill: css("--ink"), font: "600 13px system-ui", textAlign: "center", textVerticalAlign: "middle" } },
        ] };
      },
    };
  }
  const [[left, right], [low, high]] = plane.bounds;
  return {
    type: "custom", silent: true, z: 1, data: [[left, low]], renderItem: (_, api) => {
      const box = (x0, y0, x1, y1) => {
        const [[a, b], [c, d]] = [api.coord([x0, y0]), api.coord([x1, y1])];
        return { type: "rect", shape: { x: Math.min(a, c), y: Math.min(b, d), width: Math.abs(a - c), height: Math.abs(b - d) }, style: line };
      };
      if (!pitch) return { type: "group", children: [box(left, low, right, high)] };
      // In the engine's units: the field, its halves, both penalty areas, goal areas and goals.
      const [cx, cy] = api.coord([0, 0]);
      const children = [box(-1, -0.42, 0, 0.42), box(0, -0.42, 1, 0.42),
        { type: "circle", shape: { cx, cy, r: api.size([0.168, 0])[0] }, style: line }];
      for (const end of [-1, 1]) children.push(box(end, -0.241, end * 0.697, 0.241), box(end, -0.11, end * 0.899, 0.11), box(end, -0.044, end * 1.047, 0.044));
      return { type: "group", children };
    },
  };
}

function stage(drawn) {
  const { x, y } = view(drawn.getWidth(), drawn.getHeight(), plane.bounds, plane.aspect);
  const hidden = { axisLabel: { show: false }, splitLine: { show: false }, axisLine: { show: false } };
  const path = { type: "lines", coordinateSystem: "cartesian2d", polyline: true, silent: true };
  const [walked, front, ways, ball, enemy] = moving();
  const series = [
    { ...path, z: 2, data: lines(1, { width: 1.2, opacity: 0.16 }) },
    { ...path, z: 3, ...walked },
    { ...path, z: 3, lineStyle: { color: css("--ink"), width: 1.2, opacity: 0.55, type: "dashed" }, ...ways },
    { type: "scatter", z: 4, symbolSize: pitch ? 16 : 9, itemStyle: { borderColor: css("--panel"), borderWidth: 1.5 }, ...front,
      label: { show: pitch, formatter: ({ data }) => String(data.agent), color: css("--panel"), fontSize: 10, fontWeight: 600 } },
    { type: "scatter", z: 5, silent: true, symbolSize: 7, itemStyle: { color: css("--panel"), borderColor: css("--ink"), borderWidth: 2 }, ...ball },
    { type: "scatter", z: 4, symbol: "diamond", symbolSize: 9, itemStyle: { color: css("--ink"), borderWidth: 2 }, ...enemy },
  ];
  if (plane.kind === "navigation") series.push({ type: "scatter", silent: true, z: 5, data: [[0, 0]], symbolSize: 11, itemStyle: { color: css("--panel"), borderColor: css("--ink"), borderWidth: 2 } });
  return {
    grid: { left: 0, right: 0, top: 0, bottom: 0 },
    xAxis: { type: "value", min: x[0], max: x[1], ...hidden }, yAxis: { type: "value", min: y[0], max: y[1], inverse: pitch, ...hidden },
    tooltip: { trigger: "item", formatter: (item) => escapeHTML(item.name) },
    series: [scenery(), ...series],
  };
}

function setTime(time) {
  player.time = Math.max(0, Math.min(1, time));
  $("time").value = Math.round(1000 * player.time);
  charts.get($("player")).drawn.setOption({ series: moving() }, { lazyUpdate: true });
}

function setPlaying(playing) {
  player.playing = playing;
  $("play").textContent = playing ? "❚❚" : "▶";
  $("play").setAttribute("aria-label", playing ? "Pause" : "Play");
  if (!playing) return;
  if (player.time >= 1) setTime(0);
  player.last = performance.now();
  requestAnimationFrame(advance);
}

function advance(now) {
  if (!player.playing) return;
  // A whole episode takes between two and eight seconds at normal speed.
  const seconds = Math.max(2, Math.min(8, longest / 20));
  setTime(player.time + (now - player.last) / 1000 / seconds * +$("speed").value);
  player.last = now;
  if (player.time >= 1) setPlaying(false);
  else requestAnimationFrame(advance);
}

function startPlayer() {
  const titles = { navigation: "Where they go", football: "On the pitch", map: plane.ground ? "The battle: agents as dots, enemies as diamonds" : "Where they go", projection: "Their states, seen from the side that varies most" };
  $("stage-title").textContent = titles[plane.kind];
  policies.forEach(({ index, label }) => {
    const route = plane.routes?.[index];
    const chip = element("button", { type: "button", className: "chip", textContent: String(index + 1) + (route ? `: ${route.join("→")}` : "") });
    if (pitch) chip.title = route ? `The ball goes from player to player: ${route.join("→")}` : "has not won";
    chip.dataset.policy = index;
    chip.setAttribute("aria-pressed", "true");
    chip.setAttribute("aria-label", label);
    chip.addEventListener("click", () => {
      const on = !player.shown.has(index);
      if (on) player.shown.add(index); else player.shown.delete(index);
      chip.setAttribute("aria-pressed", String(on));
      redraw("player");
    });
    $("chips").append(chip);
  });
  chart("player", stage);
  $("play").addEventListener("click", () => setPlaying(!player.playing));
  $("time").addEventListener("input", (event) => { setPlaying(false); setTime(event.target.value / 1000); });
}
