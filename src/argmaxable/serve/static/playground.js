// The playground: a head with two features to drag about. regions.js decides, this draws.
import { hullOf, marginOf, regionOf } from "./regions.js";

const SVG = "http://www.w3.org/2000/svg";
const LETTERS = "ABCDEFGH";
const FEWEST = 2;
const REACH = 200;          // of a weight, in hundredths
const BIAS = 500;           // of a bias
const STEP = 5, LEAP = 25;  // by keyboard
const PLANE = 200;          // half the drawn box, in units of the drawing
const LARGEST = 10;         // box
const find = (id) => document.getElementById(id);

// ---------------------------------------------------------------------- examples

const weights = (...rows) => rows.map(([x, y, bias = 0]) => ({ x, y, bias }));
const CORNERS = [[120, 120], [150, -70], [-10, -150], [-150, 20]];
const PRESETS = [
  { name: "Inside the hull", size: 3, classes: weights(...CORNERS, [15, 10]),
    told: "E lies inside the hull of the others: for every z one of them scores at least as high. Drag it out to bring it back." },
  { name: "On the edge", size: 3, classes: weights(...CORNERS, [135, 25]),
    told: "E lies exactly between A and B: at best it is level with both, never ahead. One step outwards, and it wins." },
  { name: "A bias saves it", size: 3, classes: weights(...CORNERS, [15, 10, 100]),
    told: "E lies inside the hull, but its bias lifts it: it wins where all other scores are low." },
  { name: "A bias costs it", size: 3, classes: weights([120, 120], [150, -70], [-10, -150], [-150, 20], [40, 150, -250]),
    told: "E is a corner of the hull, yet its bias is so low that it wins only far away, outside the box. A larger box lets it." },
  { name: "Twins", size: 3, classes: weights([120, 120], [150, -70], [-10, -150], [-150, 20], [120, 120]),
    told: "A and E are the same: they always score alike, so neither ever wins alone." },
  { name: "On a line", size: 3, classes: weights([-150, -75], [-70, -35], [0, 0], [80, 40], [160, 80]),
    told: "Weights of rank 1: on a line only the two ends can win. Heads with fewer features than classes do this in higher dimensions." },
];

// ---------------------------------------------------------------------- state

const state = { classes: [], size: 3 };
let shown = [];
let statuses = "";

function load(preset) {
  state.classes = preset.classes.map((each) => ({ ...each }));
  state.size = preset.size;
  find("told").textContent = preset.told;
  for (const button of find("presets").children) button.setAttribute("aria-pressed", String(button.textContent === preset.name));
  build();
}

// ---------------------------------------------------------------------- the address

// What stands behind the #: the box, then each class as x,y,bias, all whole numbers. A link shows the same picture.
const written = () => `#${[state.size, ...state.classes.map(({ x, y, bias }) => [x, y, bias].join())].join(";")}`;

function read(text) {
  const [size, ...rows] = text.replace(/^#/, "").split(";").map((part) => part.split(",").map(Number));
  const isIn = (value, limit) => Number.isInteger(value) && Math.abs(value) <= limit;
  const isRow = (row) => row.length === 3 && isIn(row[0], REACH) && isIn(row[1], REACH) && isIn(row[2], BIAS);
  if (size.length !== 1 || !isIn(size[0], LARGEST) || size[0] < 1) return null;
  if (rows.length < FEWEST || rows.length > LETTERS.length || !rows.every(isRow)) return null;
  return { name: "", told: "", size: size[0], classes: weights(...rows) };
}

// The example that an address shows, if it is one.
const asPreset = (found) => {
  const same = (preset) => preset.size === found.size && JSON.stringify(preset.classes) === JSON.stringify(found.classes);
  return PRESETS.find(same) || found;
};

// Browsers allow so many changes of the address a second; a drag makes more.
let waiting = 0;
function remember() {
  clearTimeout(waiting);
  waiting = setTimeout(() => { if (location.hash !== written()) history.replaceState(null, "", written()); }, 150);
}

const clamp = (value, limit) => Math.max(-limit, Math.min(limit, Math.round(value)));

function move(index, x, y) {
  Object.assign(state.classes[index], { x: clamp(x, REACH), y: clamp(y, REACH) });
  refresh();
}

function tilt(index, bias) {
  state.classes[index].bias = clamp(bias, BIAS);
  refresh();
}

// ---------------------------------------------------------------------- drawing

function make(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
}
const html = (tag, css, ...children) => {
  const element = document.createElement(tag);
  if (css) element.className = css;
  element.append(...children);
  return element;
};

const axes = () => [
  make("path", { class: "frame", d: `M${-PLANE} ${-PLANE}h${2 * PLANE}v${2 * PLANE}h${-2 * PLANE}z` }),
  make("path", { class: "cross", d: `M${-PLANE} 0H${PLANE}M0 ${-PLANE}V${PLANE}` }),
];

// One set of elements for each class, made when the number of classes changes and then only moved about.
function build() {
  const kinds = state.classes.map((_, k) => `k${k}`);
  shown = state.classes.map((_, k) => ({
    region: make("polygon", { class: `region ${kinds[k]}` }),
    name: make("text", { class: "name" }, LETTERS[k]),
    ray: make("line", { class: `ray ${kinds[k]}` }),
    vector: vector(k),
    row: row(k),
  }));
  find("weights").replaceChildren(...axes(), make("polygon", { class: "hull" }),
    ...shown.map(({ ray }) => ray), ...shown.map(({ vector }) => vector));
  find("regions").replaceChildren(...shown.map(({ region }) => region), ...axes(), ...shown.map(({ name }) => name));
  document.querySelector("#list tbody").replaceChildren(...shown.map(({ row }) => row.line));
  find("add").disabled = state.classes.length === LETTERS.length;
  find("remove").disabled = state.classes.length === FEWEST;
  statuses = "";
  refresh();
}

function vector(k) {
  const element = make("g", { class: `vector k${k}`, tabindex: "0", role: "slider", "aria-label": `Weights of ${LETTERS[k]}`,
    "aria-valuemin": String(-REACH / 100), "aria-valuemax": String(REACH / 100) },
    make("circle", { class: "reach", r: "22" }), make("circle", { class: "knob", r: "11" }), make("text", { class: "letter", dy: "4" }, LETTERS[k]));
  element.addEventListener("keydown", (event) => press(event, k));
  element.addEventListener("pointerdown", (event) => grab(event, k));
  // A finger on a vector drags it and not the page; inside an SVG, touch-action does not say so.
  element.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  return element;
}

function row(k) {
  const slider = html("input");
  Object.assign(slider, { type: "range", min: -BIAS / 100, max: BIAS / 100, step: 0.05 });
  slider.setAttribute("aria-label", `Bias of ${LETTERS[k]}`);
  slider.addEventListener("input", () => tilt(k, Number(slider.value) * 100));
  const cells = { bias: html("output"), verdict: html("td", "verdict"), share: html("td", "number"), lead: html("td", "number"), blocked: html("td") };
  for (const [cell, name] of [["share", "share of box"], ["lead", "best lead"], ["blocked", "held back by"]]) cells[cell].dataset.name = name;
  const heading = html("th", "", html("span", `swatch k${k}`), LETTERS[k]);
  heading.scope = "row";
  const line = html("tr", "", heading, html("td", "", html("div", "bias", slider, cells.bias)), cells.verdict, cells.share, cells.lead, cells.blocked);
  return { line, slider, ...cells };
}

const signed = (value) => (value < 0 ? `−${Math.abs(value).toFixed(2)}` : value.toFixed(2));
const VERDICTS = { can: "can be predicted", level: "never: at best level", never: "never predicted" };

function refresh() {
  const found = state.classes.map((_, k) => ({ ...regionOf(state.classes, k, state.size), margin: marginOf(state.classes, k, state.size) }));
  const inside = document.querySelector("#weights .hull");
  inside.setAttribute("points", hullOf(state.classes).map(([x, y]) => `${x},${-y}`).join(" "));
  found.forEach((each, k) => {
    drawRegion(k, each, found);
    drawVector(k, each);
    drawRow(k, each);
  });
  find("size").value = String(state.size);
  find("from").textContent = `−${state.size}`;
  find("to").textContent = String(state.size);
  tell(found.map(({ status }) => status));
  remember();
}

function drawRegion(k, { status, corners, hasTwin }, found) {
  const { region, name } = shown[k];
  const scale = PLANE / state.size;
  region.setAttribute("points", corners.map(([x, y]) => `${(x * scale).toFixed(2)},${(-y * scale).toFixed(2)}`).join(" "));
  region.setAttribute("class", `region k${k} ${status}`);
  const [x, y] = middle(corners);
  // Twins share a region, and its name.
  const same = found.map((_, i) => i).filter((i) => i === k || (hasTwin && isTwin(i, k)));
  name.textContent = same[0] === k && (status === "can" || hasTwin) && corners.length ? same.map((i) => LETTERS[i]).join(" = ") : "";
  name.setAttribute("x", (x * scale).toFixed(1));
  name.setAttribute("y", (-y * scale + 6).toFixed(1));
}

const isTwin = (i, k) => ["x", "y", "bias"].every((part) => state.classes[i][part] === state.classes[k][part]);
const middle = (corners) => [0, 1].map((axis) => corners.reduce((sum, corner) => sum + corner[axis], 0) / (corners.length || 1));

function drawVector(k, { status }) {
  const { ray, vector } = shown[k];
  const { x, y, bias } = state.classes[k];
  Object.entries({ x1: 0, y1: 0, x2: x, y2: -y }).forEach(([name, value]) => ray.setAttribute(name, value));
  vector.setAttribute("transform", `translate(${x} ${-y})`);
  vector.setAttribute("class", `vector k${k} ${status}`);
  vector.setAttribute("aria-valuenow", String(x / 100));
  vector.setAttribute("aria-valuetext", `${signed(x / 100)}, ${signed(y / 100)}, bias ${signed(bias / 100)}, ${VERDICTS[status]}`);
}

function drawRow(k, { status, share, margin }) {
  const cells = shown[k].row;
  const bias = state.classes[k].bias / 100;
  cells.slider.value = String(bias);
  cells.bias.textContent = signed(bias);
  cells.verdict.textContent = VERDICTS[status];
  cells.verdict.className = `verdict ${status}`;
  cells.share.textContent = status === "can" ? percent(share) : "–";
  cells.lead.textContent = margin === null ? "–" : lead(margin.lead, status);
  const isHeldBack = status !== "can" && margin !== null;
  cells.blocked.textContent = isHeldBack ? margin.mixture.map(({ k: rival, share: part }) => `${LETTERS[rival]} ${Math.round(100 * part)} %`).join(", ") : "–";
}

const percent = (share) => (share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`);

// A lead too small for two digits still says on which side of zero it is, by the exact status.
function lead(value, status) {
  if (status === "level") return "0";
  const text = signed(value);
  return /[1-9]/.test(text) ? text : status === "can" ? "> 0" : "< 0";
}

function tell(now) {
  const unargmaxable = LETTERS.slice(0, now.length).split("").filter((_, k) => now[k] !== "can");
  const key = now.join();
  if (key === statuses) return;  // said only when it changes, or a reader would not stop talking
  statuses = key;
  find("summary").textContent = unargmaxable.length
    ? `${unargmaxable.length} of ${now.length} classes can never be predicted: ${unargmaxable.join(", ")}.`
    : `All ${now.length} classes can be predicted.`;
}

// ---------------------------------------------------------------------- hands

function place(event) {
  const plane = find("weights");
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(plane.getScreenCTM().inverse());
  return { x: at.x, y: -at.y };
}

function grab(event, k) {
  if (event.button !== 0) return;
  event.preventDefault();
  const handle = event.currentTarget;
  handle.focus({ preventScroll: true });
  handle.setPointerCapture(event.pointerId);
  const start = place(event);
  const off = { x: state.classes[k].x - start.x, y: state.classes[k].y - start.y };
  const drag = (moved) => {
    const now = place(moved);
    move(k, now.x + off.x, now.y + off.y);
  };
  const drop = () => {
    handle.removeEventListener("pointermove", drag);
    handle.removeEventListener("pointerup", drop);
    handle.removeEventListener("pointercancel", drop);
  };
  handle.addEventListener("pointermove", drag);
  handle.addEventListener("pointerup", drop);
  handle.addEventListener("pointercancel", drop);
}

function press(event, k) {
  const step = event.shiftKey ? LEAP : STEP;
  const { x, y, bias } = state.classes[k];
  const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (moves[event.key]) move(k, x + moves[event.key][0], y + moves[event.key][1]);
  else if (event.key === "+" || event.key === "=") tilt(k, bias + step);
  else if (event.key === "-" || event.key === "_") tilt(k, bias - step);
  else return;
  event.preventDefault();
}

// ---------------------------------------------------------------------- controls

find("presets").append(...PRESETS.map((preset) => {
  const button = html("button", "", preset.name);
  button.type = "button";
  button.addEventListener("click", () => load(preset));
  return button;
}));
find("size").addEventListener("input", () => { state.size = Number(find("size").value); refresh(); });
find("add").addEventListener("click", () => {
  // Around the circle by the golden angle: never on top of another.
  const angle = 2.4 * state.classes.length;
  state.classes.push({ x: clamp(170 * Math.cos(angle), REACH), y: clamp(170 * Math.sin(angle), REACH), bias: 0 });
  build();
});
find("remove").addEventListener("click", () => { state.classes.pop(); build(); });
addEventListener("hashchange", () => { const found = read(location.hash); if (found) load(asPreset(found)); });
load(asPreset(read(location.hash) || PRESETS[0]));
