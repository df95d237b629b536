/** Inputs over time: what every step reads, and how a script makes the same numbers. */

import type { Choice, Curve, SystemData } from "./types";

/** The value of an input in a step that has its middle at t: the operations of `toPython`, in their order. */
function at({ between, points }: Curve, k: number, t: number): number {
  const [from, y] = points[k];
  const slope = between === "linear" && k + 1 < points.length ? (points[k + 1][1] - y) / (points[k + 1][0] - from) : 0;
  return y + slope * (t - from);
}

/** A parameter's place in the choice. */
export function place(system: SystemData, name: string): number {
  let found = 0;
  for (const parameter of system.parameters) {
    if (parameter.name === name) return found;
    found += parameter.values.length;
  }
  return -1;
}

/** All inputs of all steps, [step][input]. */
export function driven(system: SystemData, choice: Choice): Float64Array {
  const count = system.inputs.length;
  const made = new Float64Array(count * choice.steps);
  system.inputs.forEach((name, i) => {
    const curve = choice.curves[i];
    const constant = choice.parameters[place(system, name)];
    let k = 0;
    for (let step = 0; step < choice.steps; step++) {
      const t = (step + 0.5) * choice.h;
      while (k + 1 < curve.points.length && curve.points[k + 1][0] <= t) k += 1;
      made[step * count + i] = curve.on ? at(curve, k, t) : constant;
    }
  });
  return made;
}

/** "0:1 2.5:-1" as points, or null where it is none: times grow from 0. */
export function read(text: string): Curve["points"] | null {
  const found = text.trim().split(/[\s,;]+/).map((word) => word.split(":").map((x) => (x === "" ? NaN : Number(x))));
  const good = found.every((x, k) => x.length === 2 && x.every(Number.isFinite) && (k ? x[0] > found[k - 1][0] : x[0] === 0));
  return good ? (found as Curve["points"]) : null;
}

export const written = (points: Curve["points"]): string => points.map(([t, y]) => `${t}:${y}`).join(" ");

/** The curve with another value from t on; what it had after that is gone. */
export function from(points: Curve["points"], t: number, value: number): Curve["points"] {
  if (!(t > 0)) return [[0, value]];
  return [...points.filter(([s]) => s < t), [t, value]];
}
