// Zip archives and the NumPy arrays in them. Whatever is odd is an error: nothing is guessed.

const CHECK = Uint32Array.from({ length: 256 }, (_, n) => {
  let value = n;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});
function crc32(data) {
  let value = 0xffffffff;
  for (const byte of data) value = CHECK[(value ^ byte) & 255] ^ (value >>> 8);
  return ~value >>> 0;
}

async function inflate(data) {
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Sizes and place of an entry; where one does not fit into 32 bits it stands in the extra field 1.
function longSizes(view, at, end, fields) {
  const wanted = Object.keys(fields).filter((name) => fields[name] === 0xffffffff);
  for (let place = at; wanted.length && place + 4 <= end; place += 4 + view.getUint16(place + 2, true)) {
    if (view.getUint16(place, true) !== 1) continue;
    wanted.splice(0).forEach((name, k) => { fields[name] = Number(view.getBigUint64(place + 4 + 8 * k, true)); });
  }
  if (wanted.length) throw new RangeError("an archive without the sizes of its files");
  return fields;
}

// The files of a zip archive by name.
export async function readZip(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = bytes.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end -= 1;
  if (end < 0) throw new RangeError("not a zip archive");
  const count = view.getUint16(end + 10, true), files = new Map();
  let at = view.getUint32(end + 16, true);
  if (count === 0xffff || at === 0xffffffff) throw new RangeError("a zip archive that is too large");
  for (let n = 0; n < count; n += 1) {
    if (view.getUint32(at, true) !== 0x02014b50) throw new RangeError("a damaged zip archive");
    const [flags, method] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true)];
    const [nameLength, extra, comment] = [28, 30, 32].map((place) => view.getUint16(at + place, true));
    const rawName = bytes.subarray(at + 46, at + 46 + nameLength);
    const name = new TextDecoder("utf-8", { fatal: true }).decode(rawName);
    const { size, packed, place } = longSizes(view, at + 46 + nameLength, at + 46 + nameLength + extra,
      { size: view.getUint32(at + 24, true), packed: view.getUint32(at + 20, true), place: view.getUint32(at + 42, true) });
    if (view.getUint32(place, true) !== 0x04034b50 || flags & 1) throw new RangeError("a damaged or encrypted entry");
    const localName = view.getUint16(place + 26, true), start = place + 30 + localName + view.getUint16(place + 28, true);
    if (String(bytes.subarray(place + 30, place + 30 + localName)) !== String(rawName)) throw new RangeError("an entry with two names");
    if (start + packed > bytes.length || (method !== 0 && method !== 8)) throw new RangeError("an entry that can't be read");
    const stored = bytes.subarray(start, start + packed);
    const data = method ? await inflate(stored) : stored;
    if (data.length !== size || crc32(data) !== view.getUint32(at + 16, true)) throw new RangeError(`${name} is damaged`);
    if (files.has(name)) throw new RangeError(`${name} occurs twice`);
    files.set(name, data);
    at += 46 + nameLength + extra + comment;
  }
  return files;
}

const half = (code) => {
  const [sign, e, m] = [code >> 15 ? -1 : 1, (code >> 10) & 31, code & 1023];
  if (e === 31) return m ? NaN : sign * Infinity;
  return sign * (e ? (1 + m / 1024) * 2 ** (e - 15) : m * 2 ** -24);
};
const READERS = {
  f2: (view, at, little) => half(view.getUint16(at, little)),
  f4: (view, at, little) => view.getFloat32(at, little),
  f8: (view, at, little) => view.getFloat64(at, little),
  i1: (view, at) => view.getInt8(at),
  i2: (view, at, little) => view.getInt16(at, little),
  i4: (view, at, little) => view.getInt32(at, little),
  i8: (view, at, little) => safe(view.getBigInt64(at, little)),
  u1: (view, at) => view.getUint8(at),
  u2: (view, at, little) => view.getUint16(at, little),
  u4: (view, at, little) => view.getUint32(at, little),
  u8: (view, at, little) => safe(view.getBigUint64(at, little)),
};
function safe(value) {
  if (value > 9007199254740991n || value < -9007199254740991n) throw new RangeError("a whole number that is too large");
  return Number(value);
}

function texts(view, size, little, count) {
  return Array.from({ length: count }, (_, n) => {
    let text = "";
    for (let k = 0; k < size; k += 1) text += String.fromCodePoint(view.getUint32(4 * (n * size + k), little));
    return text.replace(/\0+$/, "");
  });
}

// An array as { kind, size in bytes, shape, values }, its values row by row, and `data`, the stored bytes, where these are in that order too.
export function readNpy(bytes) {
  if (String.fromCharCode(...bytes.subarray(0, 6)) !== "\x93NUMPY") throw new RangeError("not a NumPy array");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [length, from] = bytes[6] === 1 ? [view.getUint16(8, true), 10] : [view.getUint32(8, true), 12];
  const header = new TextDecoder().decode(bytes.subarray(from, from + length));
  const found = /^\{'descr': '([<>|=])([a-zA-Z])(\d+)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \}\s*$/.exec(header);
  if (!found) throw new RangeError("an array of another kind");
  const [, order, kind, width, byColumns, sizes] = found;
  const shape = sizes.split(",").filter((part) => part.trim()).map(Number);
  const count = shape.reduce((product, n) => product * n, 1);
  const size = Number(width), data = bytes.subarray(from + length), isLittle = order !== ">";
  if (data.length !== count * size * (kind === "U" ? 4 : 1)) throw new RangeError("an array of another length");
  const inside = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (kind === "U") return { kind, size, shape, values: texts(inside, size, isLittle, count) };
  const read = READERS[kind + width];
  if (!read) throw new RangeError(`numbers of type ${kind}${width} can't be read here`);
  const values = kind === "f" ? new Float64Array(count) : new Array(count);
  const [rows, columns] = shape.length === 2 && byColumns === "True" ? shape : [1, count];
  if (byColumns === "True" && shape.length > 2) throw new RangeError("an array stored by columns");
  for (let n = 0; n < count; n += 1) {
    const place = byColumns === "True" && shape.length === 2 ? (n % columns) * rows + Math.floor(n / columns) : n;
    values[n] = read(inside, place * size, isLittle);
  }
  return { kind, size, shape, values, data: isLittle && byColumns === "False" ? data : null };
}

export async function readNpz(bytes) {
  const arrays = Object.create(null);
  for (const [name, data] of await readZip(bytes)) {
    if (!name.endsWith(".npy")) throw new RangeError(`${name} is not an array`);
    arrays[name.slice(0, -4)] = readNpy(data);
  }
  return arrays;
}
