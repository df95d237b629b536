/** Shapes of bodies as flat faces and lines in the body's own axes; see `noslip.scenes.shapes`. */

import type { Body } from "./types";

export type Point = [number, number, number];
export interface Mesh {
  faces: { points: Point[]; light: boolean }[]; // light: every second sector of a pattern
  lines: Point[][];
}

const TURN = 2 * Math.PI;

/** Faces of the surface r(u, v), u and v from 0 to 1. */
function sheet(r: (u: number, v: number) => Point, nu: number, nv: number, light: (i: number, j: number) => boolean): Mesh {
  const faces = [];
  for (let i = 0; i < nu; i++)
    for (let j = 0; j < nv; j++) {
      const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
      faces.push({ points: corners.map(([a, b]) => r(a / nu, b / nv)), light: light(i, j) });
    }
  return { faces, lines: [] };
}

function ellipsoid(a: number, b: number, c: number): Mesh {
  const r = (u: number, v: number): Point => {
    const [s, z] = [Math.sin(Math.PI * v), Math.cos(Math.PI * v)];
    return [a * s * Math.cos(TURN * u), b * s * Math.sin(TURN * u), c * z];
  };
  return sheet(r, 16, 8, (i, j) => (Math.floor(i / 4) + Math.floor(j / 4)) % 2 === 1);
}

/** A body of revolution with flat ends, its outline given as (radius, z). */
function turned(outline: [number, number][]): Mesh {
  const n = 24;
  const at = ([radius, z]: [number, number], k: number): Point => {
    const angle = (TURN * k) / n;
    return [radius * Math.cos(angle), radius * Math.sin(angle), z];
  };
  const faces: Mesh["faces"] = [];
  for (let s = 0; s + 1 < outline.length; s++)
    for (let k = 0; k < n; k++) {
      const points = [at(outline[s], k), at(outline[s], k + 1), at(outline[s + 1], k + 1), at(outline[s + 1], k)];
      faces.push({ points, light: Math.floor((4 * k) / n) % 2 === 1 });
    }
  return { faces, lines: [] };
}

function torus(radius: number, tube: number): Mesh {
  const r = (u: number, v: number): Point => {
    const d = radius + tube * Math.cos(TURN * v);
    return [d * Math.cos(TURN * u), d * Math.sin(TURN * u), tube * Math.sin(TURN * v)];
  };
  return sheet(r, 24, 8, (i) => Math.floor(i / 6) % 2 === 1);
}

/** A prism over a polygon, from z = low to high. */
function prism(polygon: [number, number][], low: number, high: number): Mesh {
  const level = (z: number): Point[] => polygon.map(([x, y]) => [x, y, z]);
  const [bottom, top] = [level(low), level(high)];
  const faces = [{ points: top, light: false }];
  if (high > low) {
    faces.push({ points: bottom, light: false });
    for (let k = 0; k < polygon.length; k++) {
      const next = (k + 1) % polygon.length;
      faces.push({ points: [bottom[k], bottom[next], top[next], top[k]], light: false });
    }
  }
  return { faces, lines: [] };
}

function box(x: number, y: number, low: number, high: number): Mesh {
  return prism([[x, y], [-x, y], [-x, -y], [x, -y]], low, high);
}

const MAKERS: Record<string, (sizes: number[], points: Body["points"]) => Mesh> = {
  sphere: ([r]) => ellipsoid(r, r, r),
  ellipsoid: ([a, b, c]) => ellipsoid(a, b, c),
  cylinder: ([r, l]) => turned([[0, -l / 2], [r, -l / 2], [r, l / 2], [0, l / 2]]),
  cone: ([r, l]) => turned([[0, 0], [r, 0], [0, l]]),
  torus: ([r, tube]) => torus(r, tube),
  cuboid: ([x, y, z]) => box(x / 2, y / 2, -z / 2, z / 2),
  blade: ([length, height, thickness]) => box(length / 2, thickness / 2, 0, height),
  plate: ([x, y, t], points) => prism((points as number[][]).map(([a, b]) => [a * x, b * y]), -t / 2, t / 2),
  line: ([x, y, z], points) => ({ faces: [], lines: [(points as Point[]).map(([a, b, c]) => [a * x, b * y, c * z])] }),
  surface: ([x, y, z], points) => {
    const net = points as Point[][];
    const at = (u: number, v: number): Point => {
      const [a, b, c] = net[Math.round(u * (net.length - 1))][Math.round(v * (net[0].length - 1))];
      return [a * x, b * y, c * z];
    };
    return sheet(at, net.length - 1, net[0].length - 1, () => false);
  },
  spring: ([length, radius]) => {
    const points = Array.from({ length: 121 }, (_, k): Point => {
      const angle = (TURN * k) / 12;
      return [radius * Math.cos(angle), radius * Math.sin(angle), (length * k) / 120];
    });
    return { faces: [], lines: [points] };
  },
};

/** The shape of a body with these sizes; nothing for a floor, which is drawn by whoever knows how far one sees. */
export function mesh(body: Body, sizes: number[]): Mesh {
  return MAKERS[body.kind]?.(sizes, body.points) ?? { faces: [], lines: [] };
}

/** How far a body reaches from its origin, about. */
export function reach(body: Body, sizes: number[]): number {
  if (body.kind === "floor") return 0;
  const { faces, lines } = mesh(body, sizes);
  const points = [...faces.flatMap((face) => face.points), ...lines.flat()];
  return points.reduce((most, p) => Math.max(most, Math.hypot(...p)), 0);
}

/** The point r of a body at a pose: position and unit quaternion, scalar first. */
export function placed(pose: ArrayLike<number>, at: number, r: Point): Point {
  const [w, x, y, z] = [pose[at + 3], pose[at + 4], pose[at + 5], pose[at + 6]];
  const [a, b, c] = r;
  const [tx, ty, tz] = [2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)];
  return [
    pose[at] + a + w * tx + y * tz - z * ty,
    pose[at + 1] + b + w * ty + z * tx - x * tz,
    pose[at + 2] + c + w * tz + x * ty - y * tx,
  ];
}
