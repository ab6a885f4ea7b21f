// The browser's check on the command line: node docs/js/node.mjs BUNDLE HEAD.npz [BUNDLE HEAD.npz ...]
// One pair: the exit code is 0 proven, 1 refused, 3 open, 4 partly checked. Several: a line with the answer for each.
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { checkBundle } from "./bundle.mjs";

const CODES = { proven: 0, refused: 1, open: 3, partly: 4 };

async function answer(folder, model) {
  const files = new Map();
  for (const name of await readdir(folder)) files.set(name, new Uint8Array(await readFile(join(folder, name))));
  return checkBundle(files, new Uint8Array(await readFile(model)));
}

const given = process.argv.slice(2);
if (given.length === 2) {
  const found = await answer(...given);
  console.log([...found.wrong, ...found.notChecked.map((what) => `not checked here: ${what}`), found.answer].join("\n"));
  process.exitCode = CODES[found.answer];
} else {
  for (let k = 0; k < given.length; k += 2) console.log((await answer(given[k], given[k + 1])).answer);
}
