// Who can win? The regions of a head with two features over the box [-size, size]², decided without rounding.
//
// A class is { x, y, bias } in whole hundredths, the box has a whole size. Class c beats class i where
// (w_c − w_i)·z + b_c − b_i > 0: a half-plane with whole coefficients. Its region is the box cut by one
// half-plane for each rival. Corners are whole numbers [X, Y, Z] for the point (X/Z, Y/Z), in BigInt, so
// every sign is exact. The class can be the only argmax if and only if its region has an area (a strict
// win at a point of the box is one in a neighbourhood, and the box has no part without area) and no rival has the very
// same weights and bias. A region without area is where the class is level with the best, but never ahead.

const CAN = "can", LEVEL = "level", NEVER = "never";

const gcd = (a, b) => { while (b) [a, b] = [b, a % b]; return a < 0n ? -a : a; };

function reduced([x, y, z]) {
  const common = gcd(gcd(x, y), z);
  return [x / common, y / common, z / common];
}

const valueAt = ([a, b, c], [x, y, z]) => a * x + b * y + c * z;
const isSame = (p, q) => p[0] === q[0] && p[1] === q[1] && p[2] === q[2];

// The part of a convex polygon, a segment or a point where the line's value is not negative.
function cut(points, line) {
  const values = points.map((point) => valueAt(line, point));
  const kept = [];
  points.forEach((point, k) => {
    const next = (k + 1) % points.length;
    if (values[k] >= 0n) kept.push(point);
    if (values[k] * values[next] < 0n) {
      const mine = values[k] < 0n ? -values[k] : values[k];
      const theirs = values[next] < 0n ? -values[next] : values[next];
      kept.push(reduced(point.map((part, axis) => part * theirs + points[next][axis] * mine)));
    }
  });
  return kept.filter((point, k) => !kept.slice(0, k).some((other) => isSame(other, point)));
}

function hasArea(points) {
  return points.slice(2).some((point) => {
    const [[a, b, c], [d, e, f]] = points;
    const [g, h, i] = point;
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) !== 0n;
  });
}

const gap = (own, rival) => [own.x - rival.x, own.y - rival.y, own.bias - rival.bias];

// What becomes of one class: its status, the corners of its region, and the region's share of the box.
export function regionOf(classes, index, size) {
  const s = BigInt(size);
  let points = [[-s, -s, 1n], [s, -s, 1n], [s, s, 1n], [-s, s, 1n]];
  let hasTwin = false;
  classes.forEach((rival, k) => {
    if (k === index) return;
    const line = gap(classes[index], rival);
    hasTwin = hasTwin || line.every((part) => part === 0);
    points = cut(points, line.map(BigInt));
  });
  const status = !points.length ? NEVER : !hasTwin && hasArea(points) ? CAN : LEVEL;
  const corners = points.map(([x, y, z]) => [Number(x) / Number(z), Number(y) / Number(z)]);
  return { status, corners, hasTwin, share: areaOf(corners) / (4 * size * size) };
}

function areaOf(corners) {
  let twice = 0;
  corners.forEach(([x, y], k) => {
    const [nextX, nextY] = corners[(k + 1) % corners.length];
    twice += x * nextY - nextX * y;
  });
  return Math.abs(twice) / 2;
}

// The best lead over all others in the box, and the mixture of rivals that allows no more: a linear programme
// in (x, y, lead), small enough to try every three of its constraints. In floats, for show; the status
// does not rest on it.
export function marginOf(classes, index, size) {
  const rivals = classes.map((rival, k) => ({ k, line: gap(classes[index], rival) })).filter(({ k }) => k !== index);
  if (!rivals.length) return null;
  const rows = [
    ...rivals.map(({ k, line: [a, b, c] }) => ({ k, normal: [a / 100, b / 100, -1], offset: c / 100 })),
    ...[[1, 0], [-1, 0], [0, 1], [0, -1]].map(([a, b]) => ({ k: null, normal: [a, b, 0], offset: size })),
  ];
  for (let i = 0; i < rows.length; i++) {
    for (let j = i + 1; j < rows.length; j++) {
      for (let l = j + 1; l < rows.length; l++) {
        const found = optimum([rows[i], rows[j], rows[l]], rows);
        if (found) return found;
      }
    }
  }
  return null;
}

const SLACK = 1e-9;

// The point where three constraints are tight, if it satisfies all others and nothing nearby is better.
function optimum(tight, rows) {
  const normals = tight.map(({ normal }) => normal);
  const point = solved(normals, tight.map(({ offset }) => -offset));
  if (!point) return null;
  const isInside = rows.every(({ normal, offset }) => dot(normal, point) + offset >= -SLACK * (1 + Math.abs(offset)));
  if (!isInside) return null;
  const columns = [0, 1, 2].map((axis) => normals.map((normal) => normal[axis]));
  const weights = solved(columns, [0, 0, -1]);
  if (!weights || weights.some((weight) => weight < -SLACK)) return null;
  const mixture = tight.map(({ k }, place) => ({ k, share: weights[place] })).filter(({ k, share }) => k !== null && share > SLACK);
  return { lead: point[2], mixture: mixture.sort((one, other) => other.share - one.share) };
}

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

function solved(rows, right) {
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const determinant = dot(rows[0], cross(rows[1], rows[2]));
  if (Math.abs(determinant) < 1e-12) return null;
  const parts = [cross(rows[1], rows[2]), cross(rows[2], rows[0]), cross(rows[0], rows[1])];
  return [0, 1, 2].map((axis) => parts.reduce((sum, part, k) => sum + part[axis] * right[k], 0) / determinant);
}

// The corners of the convex hull of the weight vectors, in order (Andrew's monotone chain, in whole numbers).
export function hullOf(classes) {
  const points = classes.map(({ x, y }) => [x, y]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = (ordered) => {
    const chain = [];
    for (const point of ordered) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return [...half(points), ...half(points.reverse())];
}

const turn = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
