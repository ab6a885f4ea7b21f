// The classes of a bundle, to search and to look at: what it claims about each, its evidence, and what the check found.
import { openBundle } from "./bundle.mjs";
import { wholeFromHex } from "./exact.mjs";

const PAGE = 50, HEAVIEST = 12, ENTRIES = 24;
const VERDICTS = { unargmaxable: "can never be predicted", argmaxable: "can be predicted", undecided: "undecided" };

export function element(tag, settings, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(settings || {})) if (value !== null) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Text that shows what can't be seen and can't turn the line around.
export const visible = (text) => String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`) || "''";
const number = (value) => Number(value).toLocaleString("en", { maximumSignificantDigits: 5 });

// ---------------------------------------------------------------------- what is known about a class

// The weights of a mixture as shares of 1, the heaviest first: [[class, share], ...].
function mixture(line, evidence) {
  if ("rival" in line) return [[Number(line.rival), 1]];
  const at = Number(line.certificate), classes = evidence.certificate_classes[at];
  let shares = Array.from(evidence.certificate_weights[at]);
  if ("weights" in line) {
    const whole = line.weights.map(wholeFromHex), total = whole.reduce((a, b) => a + b, 0n);
    shares = whole.map((weight) => Number((weight * 1_000_000_000n) / total));
  }
  const all = shares.reduce((a, b) => a + b, 0);
  return classes.map((i, k) => [Number(i), shares[k] / all]).filter(([, share]) => share > 0).sort((a, b) => b[1] - a[1]);
}

// The witness in words, and its entries where the bundle stores them.
function witness(line, evidence) {
  if ("own" in line) return [`its own direction: (its row − the centre) · 2^${line.own}, moved into the domain`, []];
  if ("point" in line) return [`whole numbers · 2^${line.exponent}, finer than float64`, line.point];
  const kind = "point32" in line ? "32" : "64";
  return [`a stored point of ${kind}-bit floats`, Array.from(evidence[`points${kind}`][Number(line[`point${kind}`])], number)];
}

function inWords(upper, what) {
  if (upper > 0) return `At no input of the domain does the class lead this ${what} by more than ${number(upper)}.`;
  return `At every input of the domain this ${what} scores at least ${upper < 0 ? `${number(-upper)} more` : "as much"}.`;
}
function lead(lower) {
  if (lower > 0) return `An input at which the class leads by at least ${number(lower)}`;
  return lower < 0 ? `The closest known input, at which the class trails by at most ${number(-lower)}` : "An input at which the class ties for the lead";
}

// The classes that a search text, a verdict and an outcome leave over.
export function chosen(rows, { text = "", status = "" }) {
  const wanted = text.trim().toLowerCase(), code = /^u\+([0-9a-f]{4,6})$/.exec(wanted);
  const sign = code && Number.parseInt(code[1], 16) <= 0x10ffff ? String.fromCodePoint(Number.parseInt(code[1], 16)) : null;
  return rows.filter((row) => (!status || row.status === status || (status === "wrong" && row.outcome.startsWith("not proven")))
    && (!wanted || row.label.toLowerCase().includes(wanted) || String(row.number) === wanted || (sign !== null && row.label.includes(sign))));
}

// The lines of a bundle as rows; `outcomes` has what the check found about each, null before it ran.
export function rowsOf(lines, outcomes) {
  return lines.map((line, place) => ({
    line, number: Number(line.class), label: String(line.label), status: String(line.status), outcome: outcomes ? outcomes[place] : "not checked yet",
  }));
}

// ---------------------------------------------------------------------- the page

function facts(pairs) {
  return element("dl", {}, ...pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function details(row, rows, evidence) {
  const { line } = row, names = new Map(rows.map((each) => [each.number, each.label]));
  const called = (i) => `${visible(names.has(i) ? names.get(i) : i)} (class ${i})`;
  const parts = [
    element("h3", { tabindex: "-1" }, `${visible(row.label)}: ${VERDICTS[row.status] || visible(row.status)}`),
    facts([
      ["class", String(row.number)],
      ["margin", `${line.lower === null ? "−∞" : number(line.lower)} to ${line.upper === null ? "∞" : number(line.upper)}`],
      ["found by", visible(line.method)],
      ["check", row.outcome],
      ...(line.reason ? [["reason", visible(line.reason)]] : []),
    ]),
  ];
  try {
    if (line.upper !== null && ("rival" in line || "certificate" in line)) {
      const weights = mixture(line, evidence), rest = weights.length - HEAVIEST;
      parts.push(element("h4", {}, `Certificate: ${weights.length === 1 ? "one class" : `a mixture of ${weights.length} classes`}`),
        element("p", {}, inWords(Number(line.upper), weights.length === 1 ? "class" : "mixture")),
        element("ul", { class: "mixture" }, ...weights.slice(0, HEAVIEST).map(([i, share]) =>
          element("li", {}, element("span", { class: "bar", style: `width: ${(100 * share / weights[0][1]).toFixed(1)}%` }), element("span", {}, `${called(i)} ${(100 * share).toFixed(1)} %`)))));
      if (rest > 0) parts.push(element("p", {}, `… and ${rest} lighter classes`));
    }
    const [what, entries] = ["own", "point32", "point64", "point"].some((key) => key in line) ? witness(line, evidence) : [null, []];
    if (what && line.lower !== null) {
      parts.push(element("h4", {}, "Witness"), element("p", {}, `${lead(Number(line.lower))}: ${what}.`));
      if (entries.length) parts.push(element("p", { class: "entries" }, entries.slice(0, ENTRIES).join(", ") + (entries.length > ENTRIES ? `, … (${entries.length} features)` : "")));
    }
    if ("tie" in line) parts.push(element("h4", {}, "Identical classes"), element("p", {}, Array.from(evidence.tie_classes[Number(line.tie)], Number).map(called).join(", ")));
  } catch { parts.push(element("p", {}, "Its evidence can't be read.")); }
  return parts;
}

// Show the classes of the bundle in `place`.
export function explore(place, { lines, evidence }, outcomes) {
  const rows = rowsOf(lines, outcomes);
  const search = element("input", { type: "search", id: "explore-search" });
  const filter = element("select", { id: "explore-filter" }, element("option", { value: "" }, "all"),
    ...Object.entries(VERDICTS).map(([status, words]) => element("option", { value: status }, words)),
    ...(rows.some((row) => row.outcome.startsWith("not proven")) ? [element("option", { value: "wrong" }, "not proven")] : []));
  const count = element("p", { id: "explore-count", role: "status" }), body = element("tbody", {}), more = element("button", { type: "button", id: "explore-more" }, "Show more");
  const side = element("section", { id: "explore-class", "aria-label": "Evidence" });
  let shown = PAGE;
  function draw() {
    const found = chosen(rows, { text: search.value, status: filter.value });
    count.textContent = `${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} classes`;
    body.replaceChildren(...found.slice(0, shown).map((row) => {
      const open = element("button", { type: "button", class: "label" }, visible(row.label));
      open.addEventListener("click", () => { side.replaceChildren(...details(row, rows, evidence)); side.querySelector("h3").focus(); });
      return element("tr", { class: row.status }, element("td", {}, String(row.number)), element("th", { scope: "row" }, open),
        element("td", {}, VERDICTS[row.status] || visible(row.status)), element("td", {}, row.line.upper === null ? "∞" : number(row.line.upper)), element("td", {}, row.outcome));
    }));
    more.hidden = found.length <= shown;
  }
  for (const [field, event] of [[search, "input"], [filter, "change"]]) field.addEventListener(event, () => { shown = PAGE; draw(); });
  more.addEventListener("click", () => { shown += 10 * PAGE; draw(); });
  filter.value = rows.some((row) => row.status === "unargmaxable") ? "unargmaxable" : "";
  const heads = ["class", "label", "verdict", "margin at most", "check"].map((name) => element("th", { scope: "col" }, name));
  place.replaceChildren(
    element("h2", {}, "Classes"),
    element("p", { class: "pick" }, element("label", {}, "Search labels, numbers or U+4E00 ", search), element("label", {}, "Verdict ", filter)),
    count,
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Classes" },
      element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body)),
    more, side);
  draw();
}

// Show a bundle before it was checked.
export async function exploreUnchecked(place, files) { explore(place, await openBundle(files), null); }

// Show a bundle with what the check found; over a domain that is not covered here it has no outcomes.
export async function exploreChecked(place, files, outcomes) {
  const bundle = await openBundle(files);
  explore(place, bundle, outcomes || bundle.lines.map(() => "not checked here"));
}
