// The page around the check and the explorer: files are dropped or chosen, and what was found is shown.
import { checkBundle } from "./bundle.mjs";
import { element, exploreChecked, exploreUnchecked } from "./explorer.mjs";
import { readZip } from "./npz.mjs";

const find = (id) => document.getElementById(id);
const BUNDLE = ["manifest.json", "verdicts.jsonl", "evidence.npz", "ceilings.json", "ranks.json", "sets.json"];
const lastName = (path) => path.split("/").pop();

const WORDS = {
  proven: "Every verdict is proven.",
  open: "Nothing is wrong. Some classes are undecided or missing.",
  partly: "Not all of it was checked here.",
  refused: "This bundle does not prove what it says.",
};

const list = (title, items) => items.length
  ? [element("h3", {}, title), element("ul", {}, ...items.slice(0, 50).map((item) => element("li", {}, item))), ...(items.length > 50 ? [element("p", {}, `… and ${items.length - 50} more`)] : [])]
  : [];

function show(found, seconds) {
  const { counts } = found, parts = [element("p", { class: `answer ${found.answer}` }, WORDS[found.answer])];
  if (counts) {
    const number = (value) => value.toLocaleString("en");
    parts.push(element("p", {}, `${number(counts.lines)} of ${number(counts.classes)} classes have a verdict: ${number(counts.argmaxable)} can be predicted, `
      + `${number(counts.unargmaxable)} can never be predicted, ${number(counts.undecided)} are undecided. Checked in ${seconds.toFixed(1)} s.`));
    if (!counts.hasLabels) parts.push(element("p", {}, "The model has no labels, so the labels in the bundle were not compared."));
  }
  find("check-result").replaceChildren(...parts, ...list("Wrong", found.wrong), ...list("Not checked here", found.notChecked));
}

// ---------------------------------------------------------------------- files

const given = new Map();

async function add(path, bytes) {
  const name = lastName(path);
  if (name.endsWith(".zip")) for (const [inner, data] of await readZip(bytes)) { if (!inner.endsWith("/")) await add(inner, data); }
  else given.set(name, bytes);
}

async function entriesOf(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [file];
  }
  const reader = entry.createReader(), found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) break;
    for (const inner of some) found.push(...await entriesOf(inner));
  }
  return found;
}

function say(text) { find("check-status").textContent = text; }

async function take(files) {
  try {
    for (const file of files) await add(file.name, new Uint8Array(await file.arrayBuffer()));
    await tryToCheck();
  } catch (error) {
    say("");
    show({ answer: "refused", wrong: [`unusable: ${error.message}`], notChecked: [], counts: null }, 0);
  }
}

async function tryToCheck() {
  const bundle = new Map([...given].filter(([name]) => BUNDLE.includes(name)));
  const models = [...given].filter(([name]) => name.endsWith(".npz") && !["evidence.npz", "ceilings.npz", "ranks.npz", "sets.npz"].includes(name));
  const hasBundle = bundle.has("manifest.json") || bundle.has("sets.json");
  find("check-files").textContent = given.size ? `Given: ${[...given.keys()].sort().join(", ")}` : "";
  if (!hasBundle) return say("Now the bundle: its folder, its files or a zip of them.");
  if (models.length !== 1) {
    say(models.length ? "There are several models: start again with one .npz file." : "Now the model, an .npz file with W, b and labels. Until then nothing is checked.");
    return bundle.has("manifest.json") && bundle.has("verdicts.jsonl") && bundle.has("evidence.npz") ? exploreUnchecked(find("check-explore"), bundle) : undefined;
  }
  say("Checking …");
  for (const id of ["check-result", "check-explore"]) find(id).replaceChildren();
  const start = performance.now();
  const pause = () => new Promise((resolve) => setTimeout(resolve));
  await pause();
  const found = await checkBundle(bundle, models[0][1], (done, all) => { say(`Checking: ${done.toLocaleString("en")} of ${all.toLocaleString("en")} classes`); return pause(); });
  say("");
  show(found, (performance.now() - start) / 1000);
  if (bundle.has("manifest.json") && found.answer !== "refused" || found.outcomes) await exploreChecked(find("check-explore"), bundle, found.outcomes);
}

const zone = find("check-drop");
for (const kind of ["dragenter", "dragover"]) zone.addEventListener(kind, (event) => { event.preventDefault(); zone.classList.add("over"); });
zone.addEventListener("dragleave", () => zone.classList.remove("over"));
zone.addEventListener("drop", async (event) => {
  event.preventDefault();
  zone.classList.remove("over");
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry && item.webkitGetAsEntry()).filter(Boolean);
  const files = entries.length ? [] : [...event.dataTransfer.files];
  for (const entry of entries) files.push(...await entriesOf(entry));
  await take(files);
});
for (const id of ["check-pick", "check-folder"]) find(id).addEventListener("change", (event) => take([...event.target.files]));
find("check-again").addEventListener("click", () => {
  given.clear();
  for (const id of ["check-pick", "check-folder"]) find(id).value = "";
  for (const id of ["check-result", "check-explore"]) find(id).replaceChildren();
  find("check-files").textContent = "";
  say("Drop a bundle and its model, or choose the files.");
});

// A small bundle and its model come with the page, as { name: base64 }.
const example = find("check-example");
if (example) {
  find("check-try").hidden = false;
  find("check-try").addEventListener("click", () => take(Object.entries(JSON.parse(example.textContent)).map(([name, data]) =>
    new File([Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0))], name))));
}
