/** Many members of one method, from starts that are spread along the constraints around the chosen one. */

import type { Method, Pause, System } from "./engine";
import { copied, keys } from "./states";
import type { Choice, Cloud, Members } from "./types";

const FRAMES = 200;
export const MOST_MEMBERS = 5000;

/** Normal numbers, the same ones every time. */
function normals(seed: number): () => number {
  let state = seed;
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** Admissible states around the chosen one; where there is none near a draw, another one is drawn. */
export function spread(system: System, choice: Choice, { members, spread: size }: Cloud): { q: number[]; v: number[] }[] {
  const draw = normals(1);
  const free = choice.held.map(() => false);
  const found: { q: number[]; v: number[] }[] = [];
  for (let tries = 0; found.length < members && tries < 2 * members; tries++) {
    const [q, v] = [choice.q, choice.v].map((x) => x.map((y) => y + size * draw()));
    const made = system.onto({ ...choice, q, v }, free);
    if (made) found.push(made);
  }
  return found;
}

/** Runs them side by side, a frame at a time. */
export async function members(system: System, method: Method, choice: Choice, cloud: Cloud, pause: Pause): Promise<Members | null> {
  const { steps } = choice;
  const { row, slots, text } = method.data;
  const { parts, look } = system.data;
  const starts = spread(system, choice, cloud);
  const every = Math.max(1, Math.ceil(steps / FRAMES));
  const frames = Math.ceil(steps / every) + 1;
  const count = starts.length;
  const width = keys(system.data).length;
  const begun = method.begin(system, choice, starts, 1);
  const times = new Float64Array(frames);
  const states = new Float32Array(frames * count * width);
  const points = new Float32Array(frames * count * 3);
  const ends = new Float64Array(count * width);
  const body = Math.max(0, parts.bodies.findIndex((x) => x.kind !== "floor"));
  const place = parts.marks.length ? 10 * parts.bodies.length : 7 * body; // of a member in the numbers of the scene
  const gone = new Set<number>();

  const keep = (rows: Float64Array, frame: number): void => {
    const seen = system.looks(method.data, choice, rows);
    times[frame] = Math.min(frame * every, steps) * choice.h;
    for (let k = 0; k < count; k++) {
      const to = frame * count + k;
      copied(system.data, row, system.turn, rows, k * slots.row, ends, k * width);
      if (gone.has(k)) ends.fill(NaN, k * width, (k + 1) * width);
      states.set(ends.subarray(k * width, (k + 1) * width), to * width);
      const at = k * look.out + place;
      points.set(gone.has(k) ? [NaN, NaN, NaN] : seen.subarray(at, at + 3), 3 * to);
    }
  };

  if (count) keep(begun.first, 0);
  let piece = 16;
  for (let frame = 1; frame < frames && count; frame++) {
    const [first, stop] = [(frame - 1) * every, Math.min(frame * every, steps)];
    for (let from = 0; from < count; ) {
      const some = Math.min(piece, count - from);
      const clock = performance.now();
      begun.to(first, stop, steps, every, 0, from, some);
      for (let k = from; k < from + some; k++) if (begun.failed(k)) gone.add(k);
      from += some;
      const took = performance.now() - clock;
      piece = Math.max(1, Math.min(1000, Math.round((some * 30) / Math.max(took, 0.1))));
      if (!(await pause((first + ((stop - first) * from) / count) / steps))) return null;
    }
    keep(begun.rows, frame);
  }
  const kept = Float64Array.from(starts.flatMap(({ q, v }) => [...q, ...v]));
  return { method: text, count, times, states, points, starts: kept, ends, failed: gone.size };
}
