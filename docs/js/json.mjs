// JSON as the checker needs it: a key that occurs twice is an error, and 1 is told from 1.0.
// Whole numbers become BigInt, all other numbers Number; objects have no prototype.

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;

export function parseJson(text) {
  let at = 0;
  const fail = () => { throw new SyntaxError(`not JSON at character ${at}`); };
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at += found[0].length;
    return found;
  };
  const skip = () => take(SPACE);
  const next = (character) => { skip(); if (text[at] !== character) return false; at += 1; return true; };
  const string = () => { skip(); const found = take(STRING) || fail(); return JSON.parse(found[0]); };
  function members() {
    const found = Object.create(null);
    if (next("}")) return found;
    do {
      const key = string();
      if (key in found) throw new SyntaxError(`the key ${JSON.stringify(key)} occurs twice`);
      if (!next(":")) fail();
      found[key] = value();
    } while (next(","));
    return next("}") ? found : fail();
  }
  function items() {
    const found = [];
    if (next("]")) return found;
    do found.push(value()); while (next(","));
    return next("]") ? found : fail();
  }
  function value() {
    skip();
    if (text[at] === '"') return string();
    if (next("{")) return members();
    if (next("[")) return items();
    for (const [word, meaning] of [["true", true], ["false", false], ["null", null]]) {
      if (text.startsWith(word, at)) { at += word.length; return meaning; }
    }
    const found = take(NUMBER) || fail();
    return found[1] === undefined && found[2] === undefined ? BigInt(found[0]) : Number(found[0]);
  }
  const whole = value();
  skip();
  return at === text.length ? whole : fail();
}

// A list of texts as Python's json.dumps(texts, ensure_ascii=False) writes it.
const SHORT = { '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const escaped = (character) => SHORT[character] || `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
export const dumpTexts = (texts) => `[${texts.map((text) => `"${text.replace(/["\\\u0000-\u001f]/g, escaped)}"`).join(", ")}]`;

// UTF-8 in which half of a surrogate pair stands for itself, as in Python's "surrogatepass".
export function utf8(text) {
  const found = [];
  for (const character of text) {
    const code = character.codePointAt(0);
    if (code < 0x80) found.push(code);
    else if (code < 0x800) found.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code < 0x10000) found.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else found.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  }
  return Uint8Array.from(found);
}
