// The table of a report: search, filter, sort and page through all classes. Whatever comes from the model is
// set as text, never as markup.
"use strict";
(() => {
  const PAGE = 25;
  const PRINTED = 500;
  const NONE = -1;
  const data = JSON.parse(document.getElementById("data").textContent);
  const size = data.labels.length;
  const find = (id) => document.getElementById(id);
  const number = new Intl.NumberFormat("en");

  // ------------------------------------------------------------------ what is known of a row

  const steps = new Int32Array(size);
  data.steps.at.forEach((row, k) => { steps[row] = data.steps.value[k]; });
  const more = new Int32Array(size).fill(NONE);
  data.detailed.at.forEach((row, k) => { more[row] = k; });
  const classOf = (row) => (data.classes ? data.classes[row] : row);
  const coded = (column) => {
    const places = new Uint8Array(size);
    let row = 0;
    for (const [, letter, length] of column.of.matchAll(/([A-Za-z])(\d*)/g)) {
      const code = letter.charCodeAt(0);
      places.fill(code < 97 ? code - 65 : code - 97 + 26, row, row += Number(length || 1));
    }
    return places;
  };
  const columns = { status: data.status, kind: data.kind, script: data.script, method: data.method };
  const codes = Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, coded(column)]));
  const valueOf = (name, row) => columns[name].names[codes[name][row]];
  const upper = (row) => (more[row] === NONE ? null : data.detailed.upper[more[row]]);
  const lower = (row) => data.lower[row];
  const ahead = (row) => (more[row] === NONE ? null : data.detailed.ahead[more[row]]);
  const hasAhead = data.detailed.ahead.some((count) => count !== null);
  const nameOf = (row) => (more[row] === NONE ? "" : data.detailed.name[more[row]]);
  const proofOf = (row) => (more[row] === NONE ? null : data.proofs[data.detailed.proof[more[row]]] || null);
  const tieOf = (row) => (more[row] === NONE ? null : data.ties[data.detailed.tie[more[row]]] || null);
  let rowOfClass = null;
  const labelOf = (classId) => {
    if (!data.classes) return data.labels[classId] ?? `class ${classId}`;
    rowOfClass = rowOfClass || new Map(data.classes.map((id, row) => [id, row]));
    return rowOfClass.has(classId) ? data.labels[rowOfClass.get(classId)] : `class ${classId}`;
  };
  // What was proven closest to zero: the lead of a class that can win, the lag of one that can't.
  const margin = (row) => (upper(row) === null ? lower(row) : upper(row));

  // ------------------------------------------------------------------ sorting

  const ROLES = ["never", "open", "can"];
  const missingLast = (value) => (value === null ? Infinity : value);
  const COLUMNS = [
    { key: "class", title: "class", css: "number minor", value: (row) => missingLast(classOf(row)) },
    { key: "label", title: "label", css: "label", value: (row) => data.labels[row] },
    { key: "status", title: "verdict", css: "", value: (row) => codes.status[row] },
    { key: "margin", title: "margin", css: "margin", value: (row) => missingLast(margin(row)) },
    { key: "ahead", title: "ahead", css: "number minor", value: (row) => ahead(row) ?? NONE },
    { key: "steps", title: "steps", css: "number minor", value: (row) => steps[row] },
    { key: "blocked", title: "blocked by", css: "blocked minor", value: (row) => (proofOf(row) ? -proofOf(row)[2][0] : tieOf(row) ? 0 : 1) },
    { key: "method", title: "method", css: "method minor", value: (row) => valueOf("method", row) },
  ].filter(({ key }) => (key !== "steps" || data.steps.at.length) && (key !== "ahead" || hasAhead) && (key !== "blocked" || data.detailed.at.length));
  const orders = new Map();

  function orderBy(key, down) {
    // Each column's order is found once; filters walk along it. Equals stay in class order, both ways.
    const name = `${key} ${down}`;
    if (!orders.has(name)) {
      const order = Array.from({ length: size }, (_, row) => row);
      const values = order.map(COLUMNS.find((column) => column.key === key).value);
      const sign = down ? -1 : 1;
      if (key !== "class" || data.classes || down) {
        order.sort((a, b) => (values[a] < values[b] ? -sign : values[a] > values[b] ? sign : a - b));
      }
      orders.set(name, Int32Array.from(order));
    }
    return orders.get(name);
  }

  // ------------------------------------------------------------------ filtering

  const state = { sort: hasAhead ? "ahead" : "class", down: hasAhead, page: 0, rows: new Int32Array(0), open: new Set(), perPage: PAGE };
  let lowered = null;

  function searcher(text) {
    const query = text.trim().toLowerCase();
    if (!query) return null;
    lowered = lowered || data.labels.map((label) => label.toLowerCase());
    const wanted = /^\d+$/.test(query) ? Number(query) : NONE;
    const code = /^u\+([0-9a-f]{2,6})$/.exec(query);
    const point = code ? parseInt(code[1], 16) : NONE;
    const character = code && point <= 0x10ffff ? String.fromCodePoint(point) : null;
    // One letter is in most names: they count from three on.
    const inNames = query.length < 3 ? null : query.toUpperCase();
    return (row) => lowered[row].includes(query) || (wanted !== NONE && classOf(row) === wanted)
      || (character !== null && data.labels[row] === character)
      || (inNames !== null && more[row] !== NONE && data.detailed.name[more[row]].includes(inNames));
  }

  function matching() {
    const found = searcher(find("search").value);
    const tests = Object.keys(columns)
      .map((name) => [codes[name], find(`by-${name}`).value])
      .filter(([, chosen]) => chosen !== "")
      .map(([column, chosen]) => [column, Number(chosen)]);
    let rows = orderBy(state.sort, state.down);
    for (const [column, chosen] of tests) rows = rows.filter((row) => column[row] === chosen);
    if (found) rows = rows.filter(found);
    return rows;
  }

  function refresh() {
    state.rows = matching();
    state.page = 0;
    draw();
  }

  // ------------------------------------------------------------------ drawing

  function make(tag, css, ...children) {
    const element = document.createElement(tag);
    if (css) element.className = css;
    element.append(...children);
    return element;
  }
  const isolated = (text) => make("bdi", "", text);
  // Bounds come with the three digits that were proven; whole numbers are grouped.
  const shown = (value) => {
    if (value === null || value === undefined) return "?";
    const text = Number.isInteger(value) ? number.format(Math.abs(value)) : String(Math.abs(value));
    return value < 0 ? `−${text}` : text;
  };

  function marginText(row) {
    if (upper(row) === null) return lower(row) === null ? "–" : `≥ ${shown(lower(row))}`;
    if (lower(row) === upper(row)) return shown(upper(row));
    return lower(row) === null ? `≤ ${shown(upper(row))}` : `${shown(lower(row))} … ${shown(upper(row))}`;
  }
  const percent = (share) => `${(share / 10).toFixed(share < 100 ? 1 : 0)} %`;

  function tied(row, most) {
    const [count, ...members] = tieOf(row);
    const others = members.filter((member) => member !== classOf(row)).slice(0, most);
    const parts = others.flatMap((member, k) => [k ? ", " : "", isolated(labelOf(member))]);
    const rest = count - 1 - others.length;
    return ["tied with ", ...parts, rest > 0 ? ` and ${number.format(rest)} more` : ""];
  }

  function blockers(row, most) {
    if (tieOf(row)) return tied(row, most);
    const proof = proofOf(row);
    if (!proof) return ["–"];
    const [count, classes, shares] = proof;
    const parts = classes.slice(0, most)
      .flatMap((classId, k) => [k ? ", " : "", isolated(labelOf(classId)), ` ${percent(shares[k])}`]);
    const rest = count - Math.min(most, classes.length);
    return [...parts, rest > 0 ? ` and ${number.format(rest)} more` : ""];
  }

  function cell(key, row) {
    switch (key) {
      case "class": return [classOf(row) === null ? "–" : String(classOf(row))];
      case "label": return labelCell(row);
      case "status": return [make("span", `tone ${ROLES[codes.status[row]]}`, valueOf("status", row))];
      case "margin": return [marginText(row)];
      case "ahead": return [ahead(row) === null ? "–" : number.format(ahead(row))];
      case "steps": return [steps[row] ? number.format(steps[row]) : "–"];
      case "blocked": return blockers(row, 3);
      default: return [valueOf("method", row)];
    }
  }

  function codePoint(row) {
    const characters = [...data.labels[row]];
    const name = nameOf(row);
    // The name of an ideograph only repeats its number; the details have it.
    if (/-[0-9A-F]+$/.test(name)) return name.split(" ")[0];
    if (name || characters.length !== 1 || valueOf("kind", row) !== data.character) return name;
    return `U+${characters[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  }

  function labelCell(row) {
    const parts = [isolated(data.labels[row])];
    const code = codePoint(row);
    if (code) parts.push(make("small", "", code));
    if (more[row] === NONE) return parts;
    const button = make("button", "more");
    button.type = "button";
    button.setAttribute("aria-expanded", String(state.open.has(row)));
    button.setAttribute("aria-label", `Details of ${data.labels[row]}`);
    button.addEventListener("click", () => toggle(row));
    return [button, ...parts];
  }

  function detail(row) {
    const box = make("td");
    box.colSpan = COLUMNS.length;
    const line = (...parts) => box.append(make("div", "", ...parts));
    if (nameOf(row)) line(nameOf(row));
    line([`class ${classOf(row) ?? "–"}`, valueOf("kind", row), `margin ${marginText(row)}`, valueOf("method", row),
      steps[row] ? `${steps[row]} steps` : ""].filter(Boolean).join(" · "));
    const reason = data.detailed.reason[more[row]];
    if (reason) line(`Undecided: ${reason}`);
    if (tieOf(row)) line(...tied(row, 12), ".");
    const proof = proofOf(row);
    if (proof && !tieOf(row)) {
      const [count, classes, shares] = proof;
      const known = shares.reduce((sum, share) => sum + share, 0);
      const rest = count - classes.length;
      line(rest > 0
        ? `A mixture of ${number.format(count)} classes is never below it. The heaviest, ${percent(known)} of the weight:`
        : "A mixture that is never below it:");
      box.append(make("ul", "", ...classes.map((classId, k) =>
        make("li", "", isolated(labelOf(classId)), ` ${percent(shares[k])}`))));
    }
    return make("tr", "detail", box);
  }

  function toggle(row) {
    if (!state.open.delete(row)) state.open.add(row);
    draw();
    const place = [...document.querySelectorAll("#classes tbody tr[data-row]")]
      .find((line) => line.dataset.row === String(row));
    place.querySelector(".more").focus();
  }

  function draw() {
    const first = state.page * state.perPage;
    const last = Math.min(first + state.perPage, state.rows.length);
    const lines = [];
    for (const row of state.rows.subarray(first, last)) {
      const line = make("tr", "", ...COLUMNS.map((column) => make("td", column.css, ...cell(column.key, row))));
      line.dataset.row = String(row);
      lines.push(line);
      if (state.open.has(row)) lines.push(detail(row));
    }
    document.querySelector("#classes tbody").replaceChildren(...lines);
    drawPlace(first, last);
  }

  function drawPlace(first, last) {
    const count = state.rows.length;
    const pages = Math.max(1, Math.ceil(count / state.perPage));
    find("count").textContent = count === 0
      ? "Nothing fits. Other verdicts are shown when “Verdict” is set to all."
      : `${number.format(count)} of ${number.format(size)}`;
    find("place").textContent = count ? `${number.format(first + 1)}–${number.format(last)}` : "";
    find("pages").hidden = pages === 1;
    find("first").disabled = find("previous").disabled = state.page === 0;
    find("last").disabled = find("next").disabled = state.page >= pages - 1;
  }

  function drawHeadings() {
    const headings = COLUMNS.map((column) => {
      const button = make("button", "", column.title);
      button.type = "button";
      button.dataset.sort = column.key;
      const heading = make("th", column.css.replace("label", "").replace("blocked", "").trim(), button);
      heading.scope = "col";
      if (column.key === state.sort) heading.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      button.addEventListener("click", () => sortBy(column.key));
      return heading;
    });
    document.querySelector("#classes thead tr").replaceChildren(...headings);
  }

  function sortBy(key) {
    // The farthest off come first when asked for.
    state.down = state.sort === key ? !state.down : key === "ahead";
    state.sort = key;
    drawHeadings();
    document.querySelector(`#classes thead [data-sort="${key}"]`).focus();
    refresh();
  }

  // ------------------------------------------------------------------ controls

  function fill(name) {
    const list = find(`by-${name}`);
    const counts = new Int32Array(columns[name].names.length);
    codes[name].forEach((code) => { counts[code]++; });
    const choices = columns[name].names.map((text, code) => [text, code]).filter(([, code]) => counts[code]);
    list.append(new Option("all", ""), ...choices.map(([text, code]) =>
      new Option(`${text} (${number.format(counts[code])})`, String(code))));
    list.parentElement.hidden = choices.length < 2;
    list.addEventListener("change", refresh);
  }

  function turn(page) {
    const pages = Math.ceil(state.rows.length / state.perPage);
    state.page = Math.max(0, Math.min(page(pages), pages - 1));
    draw();
  }

  function choose(name, value) {
    const code = columns[name].names.indexOf(value);
    Object.keys(columns).forEach((other) => { if (other !== "status") find(`by-${other}`).value = ""; });
    find("search").value = "";
    find(`by-${name}`).value = String(code);
    refresh();
    find("table").scrollIntoView();
    find(`by-${name}`).focus({ preventScroll: true });
  }

  function inPrint(rows) {
    state.perPage = rows;
    state.page = 0;
    draw();
  }

  Object.keys(columns).forEach(fill);
  if (codes.status.includes(0)) find("by-status").value = "0";
  find("search").addEventListener("input", refresh);
  find("filters").addEventListener("submit", (event) => event.preventDefault());
  find("first").addEventListener("click", () => turn(() => 0));
  find("previous").addEventListener("click", () => turn(() => state.page - 1));
  find("next").addEventListener("click", () => turn(() => state.page + 1));
  find("last").addEventListener("click", () => turn((pages) => pages - 1));
  document.querySelectorAll("[data-filter]").forEach((button) =>
    button.addEventListener("click", () => choose(button.dataset.filter, button.dataset.value)));
  addEventListener("beforeprint", () => inPrint(PRINTED));
  addEventListener("afterprint", () => inPrint(PAGE));
  ["filters", "classes"].forEach((id) => { find(id).hidden = false; });
  drawHeadings();
  refresh();
})();
