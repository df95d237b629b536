/** What can be plotted of a run, by keys that links hold: "energy", "q:x", "v:x", "integral:p", "lam:0", ... */

import type { Content, MethodData, Run } from "./types";

export interface Quantity {
  key: string;
  label: string;
  errors: boolean; // a size on a logarithmic axis
}

export const FLOOR = 1e-18; // what is smaller is shown there

export function quantities({ system }: Content): Quantity[] {
  const found: Quantity[] = [{ key: "energy", label: "energy error |E - E0| / |E0|", errors: true }];
  const rows = system.constraints + system.holonomic;
  if (rows) found.push({ key: "constraint", label: "constraint, largest |phi|", errors: true });
  if (system.holonomic) found.push({ key: "holonomic", label: "position constraint, largest |g|", errors: true });
  for (const name of system.integrals)
    found.push({ key: `integral:${name}`, label: `error of the integral ${name}`, errors: true });
  for (const name of system.coordinates) found.push({ key: `q:${name}`, label: name, errors: false });
  for (const name of system.coordinates) found.push({ key: `v:${name}`, label: `d${name}/dt`, errors: false });
  for (let k = 0; k < rows; k++) found.push({ key: `lam:${k}`, label: `multiplier ${k}`, errors: false });
  found.push({ key: "total", label: "energy", errors: false });
  return found;
}

/** The times of the rows as `run.t` has them: k h, or the method's own. */
export function times(method: MethodData, run: Run): Float64Array {
  if (method.own_time) return column(run, method.row.t[0]);
  const halves = new Int32Array(run.rows.buffer, run.rows.byteOffset, 2 * run.rows.length); // of whole numbers, the lower first
  const made = new Float64Array(run.rows.length / run.width);
  for (let k = 0, at = 2 * method.row.step; k < made.length; k++, at += 2 * run.width) made[k] = ((halves[at] >>> 0) + 2 ** 32 * halves[at + 1]) * run.h;
  return made;
}

export function column(run: Run, slot: number): Float64Array {
  const { rows, width } = run;
  const made = new Float64Array(rows.length / width);
  for (let k = 0, at = slot; k < made.length; k++, at += width) made[k] = rows[at];
  return made;
}

function largest(run: Run, [slot, size]: [number, number]): Float64Array {
  const { rows, width } = run;
  const made = new Float64Array(rows.length / width);
  for (let k = 0, at = slot; k < made.length; k++, at += width)
    for (let i = 0; i < size; i++) made[k] = Math.max(made[k], Math.abs(rows[at + i]));
  return made;
}

function error(values: Float64Array): Float64Array {
  const first = values[0];
  const size = Math.abs(first) || 1;
  for (let k = 0; k < values.length; k++) values[k] = Math.abs(values[k] - first) / size;
  return values;
}

/** The values of a quantity at the saved times; angles are unwrapped as `run.q` is. */
export function values(content: Content, method: MethodData, run: Run, key: string): Float64Array {
  const { row } = method;
  const [kind, name] = key.split(/:(.*)/s);
  const index = content.system.coordinates.indexOf(name);
  if (kind === "energy") return error(column(run, row.energy[0]));
  if (kind === "total") return column(run, row.energy[0]);
  if (kind === "constraint") return largest(run, row.constraint);
  if (kind === "holonomic") return largest(run, row.holonomic);
  if (kind === "integral") return name in row.integrals ? error(column(run, row.integrals[name])) : new Float64Array();
  if (kind === "lam") return column(run, row.multipliers[0] + Number(name));
  if (kind === "v") return column(run, row.v[0] + index);
  const found = column(run, row.q[0] + index);
  const turns = column(run, row.turns[0] + index);
  for (let k = 0; k < found.length; k++) found[k] += content.turn * turns[k];
  return found;
}

/** The last row as Python shows it: t, q, v, energy. */
export function last(content: Content, method: MethodData, run: Run): { t: number; q: number[]; v: number[]; energy: number } {
  const names = content.system.coordinates;
  const end = (key: string): number => values(content, method, run, key).at(-1) as number;
  return {
    t: times(method, run).at(-1) as number,
    q: names.map((name) => end(`q:${name}`)),
    v: names.map((name) => end(`v:${name}`)),
    energy: end("total"),
  };
}
