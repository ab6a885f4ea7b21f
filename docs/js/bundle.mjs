// Checks the verdicts of a proof bundle over a box, exactly, as docs/proofs.md says. No solver, nothing of argmaxable.
import { ZERO, compare, exact, fromHex, ldexp, lowestExponent, minus, plus, scaled, sum, times, wholeFromHex, wholes } from "./exact.mjs";
import { dumpTexts, parseJson, utf8 } from "./json.mjs";
import { readNpz } from "./npz.mjs";
import { sha256 } from "./sha256.mjs";

// Something that is right or wrong, but that this checker can't tell.
export class NotCovered extends Error {}
export class NotProven extends Error {}

const require_ = (holds, why) => { if (!holds) throw new NotProven(why); };
const isWhole = (value) => typeof value === "bigint";
function pick(values, number) {
  require_(isWhole(number) && number >= 0n && number < BigInt(values.length), `there is no ${number}`);
  return values[Number(number)];
}
const text = (bytes) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);

// ---------------------------------------------------------------------- the head

const FLOATS = { 2: "float16", 4: "float32", 8: "float64" };
function stored(array) {
  if (array.kind === "i" || array.kind === "u") {
    return { dtype: "float64", values: Float64Array.from(array.values), data: null };
  }
  if (array.kind !== "f") throw new NotCovered("weights that are not numbers");
  return { dtype: FLOATS[array.size], values: array.values, data: array.data };
}
function littleBytes({ dtype, values, data }) {
  if (data) return data;
  if (dtype === "float16") throw new NotCovered("float16 weights in another order");
  const typed = dtype === "float32" ? Float32Array.from(values) : values;
  return new Uint8Array(typed.buffer, typed.byteOffset, typed.byteLength);
}

export class Head {
  constructor(arrays) {
    if (!arrays.W) throw new NotCovered("the model has no array W: save the output layer as .npz with W, b and labels");
    require_(arrays.W.shape.length === 2, "W is not a matrix");
    [this.classes, this.features] = arrays.W.shape;
    const weight = stored(arrays.W), bias = arrays.b ? stored(arrays.b) : null;
    require_(!bias || (arrays.b.shape.length === 1 && arrays.b.shape[0] === this.classes), "b does not fit W");
    this.weight = weight.values;
    this.bias = bias ? bias.values : new Float64Array(this.classes);
    this.labels = arrays.labels && arrays.labels.kind === "U" ? arrays.labels.values : null;
    const name = `argmaxable-head-1 ${this.classes} ${this.features} ${weight.dtype} ${bias ? bias.dtype : "none"}\n`;
    this.sha256 = sha256(utf8(name), littleBytes(weight), ...(bias ? [littleBytes(bias)] : []));
    // All weights and biases are whole numbers at this exponent.
    this.exponent = Math.min(lowestExponent(this.weight), lowestExponent(this.bias));
    this.rows = new Map();
    // Σ|w| of each row, for the bound on the rounding of its scores.
    this.sizes = Float64Array.from({ length: this.classes }, (_, i) => this.floats(i).reduce((total, w) => total + Math.abs(w), 0));
    this.twins = this.groups();
  }

  floats(i) { return this.weight.subarray(i * this.features, (i + 1) * this.features); }

  // The row of a class with its bias at the end, as whole numbers.
  row(i) {
    if (!this.rows.has(i)) this.rows.set(i, [...wholes(this.floats(i), this.exponent), ...wholes([this.bias[i]], this.exponent)]);
    return this.rows.get(i);
  }

  // For each class those with the same weights, itself included; with the same bias too in `tied`.
  groups() {
    const found = new Map();
    for (let i = 0; i < this.classes; i += 1) {
      const key = this.floats(i).join();  // "0" for −0 as well
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(i);
    }
    const twins = new Array(this.classes);
    for (const members of found.values()) for (const i of members) twins[i] = members;
    return twins;
  }

  tied(i) { return this.twins[i].filter((other) => this.bias[other] === this.bias[i]); }
}

// ---------------------------------------------------------------------- the domain

export class Box {
  constructor(record, d) {
    const kind = record.kind;
    if (["ball", "rmsnorm", "layernorm", "hull", "reach"].includes(kind)) throw new NotCovered(`the domain is of kind ${kind}; this page checks boxes`);
    require_(kind === "box" || kind === "everywhere", "an unknown domain");
    const ends = (value) => {
      const values = Array.isArray(value) ? value.map(fromHex) : new Array(d).fill(fromHex(value));
      require_(values.length === d, "a box of another size");
      return values;
    };
    this.lo = ends(kind === "box" ? record.lo : "-inf");
    this.hi = ends(kind === "box" ? record.hi : "inf");
    require_(this.lo.every((lo, j) => lo <= this.hi[j] && lo < Infinity && this.hi[j] > -Infinity), "an empty box");
    this.ends = { lo: this.lo.map((v) => (Number.isFinite(v) ? exact(v) : null)), hi: this.hi.map((v) => (Number.isFinite(v) ? exact(v) : null)) };
  }

  holds(point) {
    return point.every((value, j) => (!this.ends.lo[j] || compare(this.ends.lo[j], value) <= 0) && (!this.ends.hi[j] || compare(value, this.ends.hi[j]) <= 0));
  }

  // The largest u·x over the box; null where there is none.
  support(u) {
    let total = ZERO;
    for (let j = 0; j < u.length; j += 1) {
      if (u[j].m === 0n) continue;
      const end = u[j].m > 0n ? this.ends.hi[j] : this.ends.lo[j];
      if (end === null) return null;
      total = plus(total, times(u[j], end));
    }
    return total;
  }
}

// ---------------------------------------------------------------------- witnesses

function pointOf(head, box, line, evidence) {
  const { features: d } = head;
  if ("own" in line) {
    require_(isWhole(line.own) && line.own >= -4000n && line.own < 4000n, "not an own direction");
    require_(evidence.centre.length === d, "a centre of the wrong length");
    const row = head.floats(Number(line.class));
    return Array.from(row, (w, j) => exact(Math.min(Math.max(ldexp(w - evidence.centre[j], Number(line.own)), box.lo[j]), box.hi[j])));
  }
  if ("point" in line) {
    require_(isWhole(line.exponent) && line.exponent >= -4000n && line.exponent < 4000n, "a point without an exponent");
    return line.point.map((value) => ({ m: wholeFromHex(value), e: Number(line.exponent) }));
  }
  const name = "point32" in line ? "32" : "64";
  return Array.from(pick(evidence[`points${name}`], line[`point${name}`]), exact);
}

// Whether the class is ahead of every other by `lower` at the point.
function checkWitness(head, box, line, evidence, lower) {
  const point = pointOf(head, box, line, evidence), c = Number(line.class), d = head.features;
  require_(point.length === d, "a witness of the wrong length");
  require_(box.holds(point), "a witness outside the domain");
  const limit = exact(lower), floats = Float64Array.from(point, (value) => (value.m === 0n ? 0 : ldexp(Number(value.m), value.e)));
  // Numbers of a fine point may have more digits than a float; then every score is computed in whole numbers.
  const areFloats = point.every((value, j) => Number.isFinite(floats[j]) && compare(exact(floats[j]), value) === 0);
  const e = point.reduce((least, value) => (value.m === 0n ? least : Math.min(least, value.e)), 0);
  const x = point.map((value) => (value.m === 0n ? 0n : scaled(value, e)));
  const score = (i) => {
    const row = head.row(i);
    let total = e > 0 ? row[d] : row[d] << BigInt(-e);
    for (let j = 0; j < d; j += 1) total += row[j] * x[j];
    return { m: total, e: head.exponent + Math.min(e, 0) };
  };
  const rough = areFloats ? scoresInFloats(head, floats) : null;
  let own = null;
  for (let i = 0; i < head.classes; i += 1) {
    if (i === c || (rough && isClear(rough, c, i, lower))) continue;
    own = own || score(c);
    require_(compare(plus(own, minus(score(i))), limit) >= 0, "its witness does not prove it");
  }
}

// Scores in floats, each with a bound on its error. A sum of d products and a bias, in any order, is off by at most
// γ Σ|w x| + γ|b| with γ = n u / (1 − n u), n = d + 1 and u = 2^−53, and by 2^−1074 for each product that underflows. Σ|w x| is at most
// Σ|w| · max|x|. Twice the unit and a few more operations cover the rounding of the bound itself.
function scoresInFloats(head, x) {
  const { classes, features: d, weight, bias, sizes } = head;
  const largest = x.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const values = new Float64Array(classes), errors = new Float64Array(classes);
  for (let i = 0, at = 0; i < classes; i += 1) {
    let total = bias[i];
    for (let j = 0; j < d; j += 1, at += 1) total += weight[at] * x[j];
    values[i] = total;
    errors[i] = (d + 8) * (2 ** -52 * (sizes[i] * largest + Math.abs(bias[i])) + 2 ** -1070);
  }
  return { values, errors };
}

// Certain that class c is ahead of class i by more than `lower`. False where anything overflowed: NaN is not above.
function isClear({ values, errors }, c, i, lower) {
  const spare = values[c] - values[i] - lower;
  return spare > errors[c] + errors[i] + 2 ** -50 * (Math.abs(values[c]) + Math.abs(values[i]) + Math.abs(lower));
}

// ---------------------------------------------------------------------- certificates

function checkCertificate(head, box, line, evidence, upper) {
  const c = Number(line.class), d = head.features;
  let classes = [line.rival], weights = [{ m: 1n, e: 0 }];
  if (!("rival" in line)) {
    classes = pick(evidence.certificate_classes, line.certificate).map(BigInt);
    const basis = pick(evidence.certificate_basis, line.certificate);
    require_(basis >= 0 && basis <= classes.length, "a basis of the wrong size");
    if ("weights" in line) weights = line.weights.map((value) => ({ m: wholeFromHex(value), e: 0 }));
    else if (basis > 0) throw new NotCovered("its weights have to be solved for: write the bundle with --rational");
    else weights = Array.from(pick(evidence.certificate_weights, line.certificate), exact);
  }
  require_(classes.length === weights.length && new Set(classes).size === classes.length, "a class twice, or weights for others");
  require_(classes.every((i) => isWhole(i) && i >= 0n && i < BigInt(head.classes) && Number(i) !== c), "weight where none may be");
  require_(weights.every(({ m }) => m >= 0n) && weights.some(({ m }) => m > 0n), "weights below 0, or none");
  const e = weights.reduce((least, weight) => Math.min(least, weight.m ? weight.e : least), 0);
  const whole = weights.map((weight) => (weight.m ? scaled(weight, e) : 0n)), total = whole.reduce((a, b) => a + b, 0n);
  const mixed = head.row(c).map((value) => total * value);
  classes.forEach((i, k) => { if (whole[k]) head.row(Number(i)).forEach((value, j) => { mixed[j] -= whole[k] * value; }); });
  const at = head.exponent + e, u = mixed.slice(0, d).map((m) => ({ m, e: at }));
  const support = box.support(u);
  require_(support !== null, "its certificate bounds nothing on this domain");
  require_(compare(sum([support, { m: mixed[d], e: at }]), times(exact(upper), { m: total, e })) <= 0, "its certificate does not prove it");
}

// ---------------------------------------------------------------------- lines

function bound(value) {
  if (value === null) return null;
  require_(isWhole(value) || typeof value === "number", "a bound that is not a number");
  const found = Number(value);
  require_(Number.isFinite(found), "a bound that is not finite");
  return found;
}

function checkLine(head, box, line, evidence) {
  const witnesses = ["own", "point32", "point64", "point"].filter((key) => key in line);
  require_(witnesses.length < 2 && !("rival" in line && "certificate" in line), "evidence that excludes another");
  require_(["own", "rival"].every((key) => !(key in line) || isWhole(line[key])), "evidence by other than numbers");
  require_("lower" in line && "upper" in line && "method" in line && "status" in line, "a line that lacks a key");
  const [low, high] = [bound(line.lower), bound(line.upper)];
  const status = low !== null && low > 0 ? "argmaxable" : high === null || high > 0 ? "undecided" : "unargmaxable";
  const isOnly = head.classes === 1 && witnesses.length === 1 && line.status === "argmaxable";
  require_(line.status === status || isOnly, `its bounds make it ${status}`);
  const c = Number(line.class), tied = head.tied(c);
  const group = "tie" in line ? [...pick(evidence.tie_classes, line.tie)].sort((a, b) => a - b) : [c];
  require_(group.length === tied.length && group.every((i, k) => i === tied[k]), "other classes are identical to it");
  require_(line.method !== "twin" || head.twins[c].length > 1, "no class has its weights");
  if (low !== null) { require_(witnesses.length === 1, "a bound without a witness"); checkWitness(head, box, line, evidence, low); }
  if (high !== null) { require_("rival" in line || "certificate" in line, "a bound without a certificate"); checkCertificate(head, box, line, evidence, high); }
  if (isOnly && low === null) require_(box.holds(pointOf(head, box, line, evidence)), "a witness outside the domain");
}

function readEvidence(arrays) {
  const found = Object.create(null), floats = ["centre", "points32", "points64", "certificate_weights"];
  const whole = ["certificate_start", "certificate_classes", "certificate_basis", "coordinate_start", "coordinates", "tie_start", "tie_classes"];
  for (const name of [...floats, ...whole]) {
    require_(arrays[name], `evidence.npz has no ${name}`);
    require_(floats.includes(name) ? arrays[name].kind === "f" : "iu".includes(arrays[name].kind), `${name} holds other numbers`);
    found[name] = arrays[name].values;
  }
  require_(Array.from(found.centre).every(Number.isFinite), "a centre that is not finite");
  for (const name of ["points32", "points64"]) {
    const [rows, columns] = arrays[name].shape, values = found[name];
    require_(arrays[name].shape.length === 2, `${name} is not a matrix`);
    found[name] = Array.from({ length: rows }, (_, k) => values.subarray(k * columns, (k + 1) * columns));
  }
  for (const [name, starts] of [["tie_classes", "tie_start"], ["certificate_classes", "certificate_start"], ["certificate_weights", "certificate_start"], ["coordinates", "coordinate_start"]]) {
    const start = found[starts], values = found[name];
    require_(start[0] === 0 && start[start.length - 1] === values.length && start.every((at, k) => k === 0 || at >= start[k - 1]), `${starts} does not divide ${name}`);
    found[name] = Array.from({ length: start.length - 1 }, (_, k) => values.slice(start[k], start[k + 1]));
  }
  require_(found.certificate_basis.length === found.certificate_classes.length, "certificates without a basis");
  return found;
}

// ---------------------------------------------------------------------- the bundle

const same = (a, b) => typeof a === typeof b && JSON.stringify(a, plain) === JSON.stringify(b, plain);
const plain = (_, value) => (isWhole(value) ? { whole: String(value) } : value);  // no text looks like that

// What the bundle says in words: about what, what it says, what is found.
function* statements(head, manifest, lines, files) {
  const about = manifest.head, isNew = manifest.format === "argmaxable-proofs-2";
  yield ["classes", about.classes, BigInt(head.classes)];
  yield ["features", about.features, BigInt(head.features)];
  for (const status of ["argmaxable", "unargmaxable", "undecided"]) {
    yield [status, manifest[status], BigInt(lines.filter((line) => line.status === status).length)];
  }
  const tied = lines.filter((line) => "tie" in line && line.status === "unargmaxable" && line.method === "twin" && line.lower !== null && line.lower >= 0);
  yield ["tied", manifest.tied, BigInt(tied.length)];
  const stopped = lines.some((line) => ["interrupted", "not reached"].includes(line.reason));
  yield ["complete", manifest.complete, manifest.complete === true && !stopped];
  if (isNew) {
    const names = Object.keys(manifest.files).sort();
    yield ["files", names.map((name) => [name, manifest.files[name]]), ["evidence.npz", "verdicts.jsonl"].map((name) => [name, sha256(files.get(name))])];
  }
  const labels = lines.map((line) => line.label), numbers = lines.map((line) => String(line.class));
  if (isNew ? about.labels_sha256 === null : same(labels, numbers)) {
    yield ["labels", labels, numbers];
  } else if (head.labels) {
    yield ["labels", labels, lines.map((line) => head.labels[Number(line.class)])];
    if (isNew) yield ["labels_sha256", about.labels_sha256, sha256(utf8(dumpTexts(head.labels)))];
  }
}

const OTHER_CLAIMS = { "ceilings.json": "ceilings of probabilities", "ranks.json": "best ranks", "sets.json": "sets of labels" };

// What a bundle claims, as it is written: its manifest, its lines and its evidence.
export async function openBundle(files) {
  for (const name of ["manifest.json", "verdicts.jsonl", "evidence.npz"]) {
    if (!files.has(name) && Object.keys(OTHER_CLAIMS).some((other) => files.has(other))) throw new NotCovered("there are no verdicts in this bundle");
    require_(files.has(name), `the bundle has no ${name}`);
  }
  const manifest = parseJson(text(files.get("manifest.json")));
  require_(["argmaxable-proofs-1", "argmaxable-proofs-2"].includes(manifest.format), "another format");
  const rows = text(files.get("verdicts.jsonl")).split(/\r\n|\n|\r/);
  if (rows[rows.length - 1] === "") rows.pop();
  return { manifest, lines: rows.map(parseJson), evidence: readEvidence(await readNpz(files.get("evidence.npz"))) };
}

// Checks a bundle (its files by name, as bytes) against a model (the bytes of an .npz). The answer:
// { answer: "proven" | "open" | "refused" | "partly", wrong, notChecked, counts, outcomes }, the outcome of each line in words.
// `tell(done, all)` is awaited now and then.
export async function checkBundle(files, model, tell = async () => {}) {
  const wrong = [], notChecked = [], outcomes = [];
  for (const [name, what] of Object.entries(OTHER_CLAIMS)) if (files.has(name)) notChecked.push(`${what} (${name})`);
  try {
    const { manifest, lines, evidence } = await openBundle(files);
    const head = new Head(await readNpz(model));
    require_(manifest.head.sha256 === head.sha256, "these proofs are for another model");
    const box = new Box(manifest.domain, head.features);
    for (const line of lines) require_(isWhole(line.class) && line.class >= 0n && line.class < BigInt(head.classes), `there is no class ${line.class}`);
    for (const [name, said, found] of statements(head, manifest, lines, files)) if (!same(said, found)) wrong.push(`${name}: the bundle states something other than what it holds`);
    const seen = new Set();
    let unsolved = 0;
    for (const [place, line] of lines.entries()) {
      try {
        require_(!seen.has(line.class), "it has two lines");
        seen.add(line.class);
        checkLine(head, box, line, evidence);
        outcomes.push(line.status === "undecided" ? "nothing to prove" : "proven");
      } catch (error) {
        outcomes.push(error instanceof NotCovered ? "not checked here" : `not proven: ${error.message}`);
        if (error instanceof NotCovered) unsolved += 1;
        else wrong.push(`class ${line.class}${line.label === String(line.class) ? "" : ` (${line.label})`} is not proven: ${error.message}`);
      }
      if (place % 64 === 63) await tell(place + 1, lines.length);
    }
    if (unsolved) notChecked.push(`${unsolved} classes whose weights have to be solved for (write the bundle with --rational)`);
    const counts = { classes: head.classes, lines: lines.length, undecided: Number(manifest.undecided), unargmaxable: Number(manifest.unargmaxable), argmaxable: Number(manifest.argmaxable), hasLabels: Boolean(head.labels) };
    const isOpen = counts.undecided > 0 || counts.lines < counts.classes;
    return { answer: wrong.length ? "refused" : notChecked.length ? "partly" : isOpen ? "open" : "proven", wrong, notChecked, counts, outcomes };
  } catch (error) {
    if (error instanceof NotCovered) return { answer: "partly", wrong, notChecked: [...notChecked, error.message], counts: null, outcomes: null };
    return { answer: "refused", wrong: [...wrong, `unusable: ${error.message}`], notChecked, counts: null, outcomes: null };
  }
}
