// Numbers without rounding: a whole number m times a power of two, m · 2^e. Every finite float is one.

const bits = new DataView(new ArrayBuffer(8));

// The float as [m, e] with m a whole number of at most 53 bits, as a Number.
function parts(value) {
  if (!Number.isFinite(value)) throw new RangeError("a number that is not finite");
  bits.setFloat64(0, value);
  const high = bits.getUint32(0);
  const biased = (high >>> 20) & 0x7ff;
  const mantissa = (high & 0xfffff) * 2 ** 32 + bits.getUint32(4) + (biased ? 2 ** 52 : 0);
  return [high >>> 31 ? -mantissa : mantissa, (biased || 1) - 1075];
}

export function exact(value) {
  const [m, e] = parts(value);
  return m === 0 ? { m: 0n, e: 0 } : { m: BigInt(m), e };
}

export const ZERO = { m: 0n, e: 0 };
export const scaled = (x, e) => x.m << BigInt(x.e - e);  // the whole number at the exponent e, which is not above x.e
export const times = (x, y) => ({ m: x.m * y.m, e: x.e + y.e });
export const minus = (x) => ({ m: -x.m, e: x.e });
export function plus(x, y) {
  if (x.m === 0n) return y;
  if (y.m === 0n) return x;
  const e = Math.min(x.e, y.e);
  return { m: scaled(x, e) + scaled(y, e), e };
}
export const sum = (values) => values.reduce(plus, ZERO);
// Below 0, 0 or above 0 as x is below, equal to or above y.
export function compare(x, y) {
  const { m } = plus(x, minus(y));
  return m < 0n ? -1 : m > 0n ? 1 : 0;
}

// The smallest exponent among floats: at it, all of them are whole.
export function lowestExponent(values) {
  let least = 1024;
  for (const value of values) {
    if (value === 0) continue;
    const e = parts(value)[1];
    if (e < least) least = e;
  }
  return least === 1024 ? 0 : least;
}

// Floats as whole numbers at an exponent that is not above any of theirs.
export function wholes(values, e) {
  return Array.from(values, (value) => {
    const [m, own] = parts(value);
    return m === 0 ? 0n : BigInt(m) << BigInt(own - e);
  });
}

// v · 2^power, rounded once, as C's ldexp does.
export function ldexp(v, power) {
  if (v === 0 || !Number.isFinite(v)) return v;
  const [m, e] = parts(v);
  const size = Math.floor(Math.log2(Math.abs(m)));
  // A number from 1 to 2; log2 may be off by one next to a power of two, which the loop below mends.
  let one = m / 2 ** size, whole = e + size + power;
  while (Math.abs(one) >= 2) { one /= 2; whole += 1; }
  while (Math.abs(one) < 1) { one *= 2; whole -= 1; }
  if (whole > 1023) return one * Infinity;
  if (whole >= -1022) return one * 2 ** whole;
  if (whole < -1075) return one * 0;
  return one * 2 ** (whole + 1074) * 2 ** -1074;  // the first product is exact, the second rounds
}

// A C hexadecimal float, which must be a float64 exactly; "inf" and "-inf" too.
export function fromHex(text) {
  if (text === "inf" || text === "+inf") return Infinity;
  if (text === "-inf") return -Infinity;
  const found = typeof text === "string" && /^([+-]?)0x([0-9a-f]+)(?:\.([0-9a-f]*))?(?:p([+-]?\d{1,5}))?$/i.exec(text);
  if (!found) throw new SyntaxError(`${JSON.stringify(text)} is not a hexadecimal float`);
  const [, sign, whole, fraction = "", power = "0"] = found;
  const m = BigInt(`0x${whole}${fraction}`);
  if (m === 0n) return sign === "-" ? -0 : 0;
  const e = Number(power) - 4 * fraction.length;
  const length = m.toString(2).length;
  const kept = length > 53 ? m >> BigInt(length - 53) : m;
  const value = ldexp(Number(kept), e + Math.max(0, length - 53));
  if (!Number.isFinite(value) || compare(exact(value), { m, e }) !== 0) throw new RangeError(`${text} is not a float64`);
  return sign === "-" ? -value : value;
}

// A whole number in hexadecimal, lower case without leading zeros: "-0x1f".
export function wholeFromHex(text) {
  if (typeof text !== "string" || !/^(0x0|-?0x[1-9a-f][0-9a-f]*)$/.test(text)) throw new SyntaxError(`${JSON.stringify(text)} is not a whole number`);
  return text.startsWith("-") ? -BigInt(text.slice(1)) : BigInt(text);
}
