/** What the page can be asked from the console, as `noslip`: numbers as `simulate` gives them. */

import type { Shown } from "./plots";
import { frameAt } from "./portrait";
import { last } from "./quantities";
import { toPython } from "./share";
import { keys } from "./states";
import type { Choice, Content, Crossings, Members } from "./types";

export interface Facts {
  content: Content;
  choice: Choice;
  shown: Shown[];
  found: Crossings[];
  members: Members | null;
}

/** Where a member of the cloud began, where it ended, and where it is drawn at a time: its state and its point in space. */
function member({ content, members }: Facts, k: number, t: number): Record<"q0" | "v0" | "q" | "v" | "state" | "point", number[]> | null {
  if (!members || k >= members.count) return null;
  const n = content.system.coordinates.length;
  const width = keys(content.system).length;
  const part = (x: Float64Array | Float32Array, from: number, size = n): number[] => Array.from(x.subarray(from, from + size));
  const [start, end] = [2 * n * k, width * k + 1];
  const drawn = frameAt(members.times, t) * members.count + k;
  return {
    q0: part(members.starts, start), v0: part(members.starts, start + n), q: part(members.ends, end), v: part(members.ends, end + n),
    state: part(members.states, drawn * width, 1 + 2 * n), point: part(members.points, 3 * drawn, 3),
  };
}

/** The states in which a method meets the section, by the names of their numbers. */
function crossings({ content, found }: Facts, text: string): Record<string, number>[] {
  const names = keys(content.system);
  const states = found.find((x) => x.method === text)?.states ?? new Float64Array();
  const of = (k: number): [string, number][] => names.map((name, i) => [name, states[k * names.length + i]]);
  return Array.from({ length: states.length / names.length }, (_, k) => Object.fromEntries(of(k)));
}

export function answers(facts: () => Facts): Record<string, unknown> {
  return {
    lastRows: () => Object.fromEntries(facts().shown.map(({ method, run }) => [method.text, last(facts().content, method, run)])),
    python: () => toPython(facts().content, facts().choice),
    crossings: (text: string) => crossings(facts(), text),
    member: (k: number, t = 0) => member(facts(), k, t),
  };
}
