// SHA-256, written out, because browsers offer theirs to some pages only.

const firstPrimes = [];
for (let n = 2; firstPrimes.length < 64; n += 1) if (firstPrimes.every((p) => n % p)) firstPrimes.push(n);
// The first 32 bits behind the point of the primes' roots. Whole numbers find them without rounding.
function rootBits(prime, power) {
  const target = BigInt(prime) << BigInt(32 * power);
  let low = 0n, high = 1n << 40n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** BigInt(power) <= target) low = middle; else high = middle;
  }
  return Number(low & 0xffffffffn) | 0;
}
const ROUNDS = Int32Array.from(firstPrimes, (prime) => rootBits(prime, 3));
const START = firstPrimes.slice(0, 8).map((prime) => rootBits(prime, 2));

// The digest of byte arrays one after the other, in hexadecimal.
export function sha256(...pieces) {
  const length = pieces.reduce((total, piece) => total + piece.length, 0);
  const data = new Uint8Array(((length + 72) >> 6) << 6);
  let end = 0;
  for (const piece of pieces) { data.set(piece, end); end += piece.length; }
  data[end] = 0x80;
  const view = new DataView(data.buffer);
  view.setUint32(data.length - 8, Math.floor(length / 2 ** 29));
  view.setUint32(data.length - 4, (length << 3) >>> 0);
  const state = Int32Array.from(START), w = new Int32Array(64);
  for (let block = 0; block < data.length; block += 64) {
    for (let t = 0; t < 16; t += 1) w[t] = view.getInt32(block + 4 * t);
    for (let t = 16; t < 64; t += 1) {
      const x = w[t - 15], y = w[t - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[t] = (w[t - 16] + s0 + w[t - 7] + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let t = 0; t < 64; t += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const one = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[t] + w[t]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((value, place) => { state[place] = (state[place] + value) | 0; });
  }
  return Array.from(state, (value) => (value >>> 0).toString(16).padStart(8, "0")).join("");
}
