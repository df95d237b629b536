/** States as short rows of numbers: t, q with whole turns, v, multipliers and energy, in the order of `keys`. */

import type { RowPlaces, SystemData } from "./types";

export function keys(system: SystemData): string[] {
  const lam = Array.from({ length: system.constraints + system.holonomic }, (_, k) => `lam:${k}`);
  return ["t", ...system.coordinates.map((x) => `q:${x}`), ...system.coordinates.map((x) => `v:${x}`), ...lam, "total"];
}

/** Copies the state of the row at `from` to `to`. */
export function copied(system: SystemData, row: RowPlaces, turn: number, rows: Float64Array, from: number, made: Float64Array | Float32Array, to: number): void {
  const n = system.coordinates.length;
  const lam = system.constraints + system.holonomic;
  made[to] = rows[from + row.t[0]];
  for (let k = 0; k < n; k++) {
    made[to + 1 + k] = rows[from + row.q[0] + k] + turn * rows[from + row.turns[0] + k];
    made[to + 1 + n + k] = rows[from + row.v[0] + k];
  }
  for (let k = 0; k < lam; k++) made[to + 1 + 2 * n + k] = rows[from + row.multipliers[0] + k];
  made[to + 1 + 2 * n + lam] = rows[from + row.energy[0]];
}
