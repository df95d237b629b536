/** Modules of noslip's WebAssembly backend: which form rounds once, and how their functions are called. */

import { driven } from "./curves";
import { copied, keys } from "./states";
import { Watch } from "./section";
import type { Choice, Crossings, MethodData, ModuleData, Run, Section, Start, SystemData } from "./types";

const PAGE = 65536;
export const MOST_ROWS = 4000; // of a run; longer ones keep every k-th state and the last
export type Pause = (part: number) => Promise<boolean>; // between pieces of work: whether to go on

async function unpacked(text: string): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

type Function = (...values: (number | bigint)[]) => void;

export class Module {
  private constructor(
    readonly form: "relaxed" | "plain",
    readonly memory: WebAssembly.Memory,
    private readonly functions: WebAssembly.Exports,
    private readonly free: number,
  ) {}

  /** The form with relaxed SIMD where its multiply-add rounds once, else the plain one. */
  static async of(data: ModuleData): Promise<Module> {
    const code = await unpacked(data.relaxed);
    if (WebAssembly.validate(code)) {
      const module = await Module.made("relaxed", code, data.free);
      const fused = module.functions.fused as (a: number, b: number, c: number) => number;
      if (fused(1 + 2 ** -30, 1 - 2 ** -30, -1) === -(2 ** -60)) return module;
    }
    return Module.made("plain", await unpacked(data.plain), data.free);
  }

  private static async made(form: "relaxed" | "plain", code: Uint8Array<ArrayBuffer>, free: number): Promise<Module> {
    const memory = new WebAssembly.Memory({ initial: free / PAGE + 1 });
    const pointer = new WebAssembly.Global({ value: "i32", mutable: true }, free);
    const env = { __linear_memory: memory, __stack_pointer: pointer };
    const { instance } = await WebAssembly.instantiate(code, { env });
    return new Module(form, memory, instance.exports, free);
  }

  /** Addresses of tables of so many slots each, and views of them that hold until the next call. */
  tables(...slots: number[]): { at: number[]; views: Float64Array[] } {
    const at: number[] = [];
    let end = this.free;
    for (const count of slots) {
      at.push(end);
      end += 8 * count;
    }
    const missing = Math.ceil((end - this.memory.buffer.byteLength) / PAGE);
    if (missing > 0) this.memory.grow(missing);
    return { at, views: slots.map((count, k) => new Float64Array(this.memory.buffer, at[k], count)) };
  }

  call(name: string, ...values: (number | bigint)[]): void {
    (this.functions[name] as Function)(...values);
  }
}

export class System {
  constructor(
    readonly data: SystemData,
    readonly turn: number,
    private readonly module: Module,
  ) {}

  /** The start put on the constraints; where they do not let the held speeds stay, all of them move. Null where none is near. */
  start(choice: Choice, held: boolean[]): Start | null {
    const found = this.onto(choice, held);
    if (found) return { ...found, relaxed: false };
    const free = this.onto(choice, held.map(() => false));
    return free && { ...free, relaxed: true };
  }

  /** The nearest position and velocity on the constraints with the held speeds as they are, or null. */
  onto(choice: Choice, held: boolean[]): { q: number[]; v: number[] } | null {
    const n = this.data.coordinates.length;
    const { at, views } = this.module.tables(choice.parameters.length, this.data.onto.in, this.data.onto.out);
    views[0].set(choice.parameters);
    views[1].set([...choice.q, ...choice.v, ...held.map(Number)]);
    this.module.call("onto", at[0], at[1], at[2], 1n);
    const out = Array.from(views[2]);
    const state = out.slice(0, 2 * n);
    if (!(out[2 * n] <= 1 && state.every(Number.isFinite))) return null; // how far off it is
    return { q: state.slice(0, n), v: state.slice(n) };
  }

  /** The numbers of the scene at every row. */
  looks(method: MethodData, choice: Choice, rows: Float64Array): Float64Array {
    const { row, slots } = method;
    const n = this.data.coordinates.length;
    const count = rows.length / slots.row;
    const given = this.data.look;
    const lam = this.data.constraints + this.data.holonomic;
    const { at, views } = this.module.tables(choice.parameters.length * count, given.in * count, given.out * count);
    const [fixed, seen, made] = views;
    const [{ parameters }, [q], [multipliers], [t]] = [choice, row.q, row.multipliers, row.t];
    for (let k = 0, from = 0, to = 0, own = 0; k < count; k++, from += slots.row, to += given.in) {
      for (let i = 0; i < parameters.length; i++) fixed[own++] = parameters[i];
      for (let i = 0; i < n; i++) seen[to + i] = rows[from + q + i];
      for (let i = 0; i < lam; i++) seen[to + n + i] = rows[from + multipliers + i];
      seen[to + n + lam] = rows[from + t];
    }
    this.module.call("look", at[0], at[1], at[2], BigInt(count));
    return made.slice();
  }
}

/** Members of a method on their way, each with slots of its own for its state and its rows. */
export class Started {
  private readonly at: number[];
  private readonly states: BigInt64Array;
  readonly rows: Float64Array; // [member][capacity][slot]
  readonly first: Float64Array; // the rows of the start

  constructor(
    private readonly data: MethodData,
    private readonly module: Module,
    system: SystemData,
    choice: Choice,
    starts: { q: number[]; v: number[] }[],
    private readonly capacity: number,
  ) {
    const { slots } = data;
    const given = system.inputs.length ? driven(system, choice) : new Float64Array();
    const count = starts.length;
    const both = slots.carry + slots.row;
    const { at, views } = module.tables(slots.fixed * count, slots.initial * count, both * count, slots.carry * count, slots.row * capacity * count, given.length);
    const [fixed, initial, made, carry, rows, inputs] = views;
    inputs.set(given);
    starts.forEach(({ q, v }, k) => {
      fixed.set([...choice.parameters, choice.h], k * slots.fixed);
      initial.set([...q, ...v, 0, ...given.subarray(0, system.inputs.length)], k * slots.initial);
    });
    module.call("start", at[0], at[1], at[2], BigInt(count));
    this.first = new Float64Array(slots.row * count);
    for (let k = 0; k < count; k++) {
      carry.set(made.subarray(k * both, k * both + slots.carry), k * slots.carry);
      this.first.set(made.subarray(k * both + slots.carry, (k + 1) * both), k * slots.row);
    }
    this.at = [at[0], at[3], at[4], ...(given.length ? [at[5]] : [])];
    this.states = new BigInt64Array(module.memory.buffer, at[3], slots.carry * count);
    this.rows = rows;
  }

  /** Steps of some members, with rows from the `saved`-th place on. */
  to(first: number, stop: number, last: number, every: number, saved = 0, from = 0, members = 1): void {
    const { slots } = this.data;
    const [fixed, carry, rows, ...inputs] = this.at;
    const places = [fixed + 8 * from * slots.fixed, carry + 8 * from * slots.carry, rows + 8 * slots.row * (from * this.capacity + saved)];
    const numbers = [members, first, stop, last, every, this.capacity].map(BigInt);
    this.module.call("advance", ...places, ...numbers, ...inputs, ...(inputs.length ? [0n] : []));
  }

  /** The step that a member could not solve, or 0. */
  failed(member = 0): number {
    const { slots, carry } = this.data;
    const at = member * slots.carry;
    return this.states[at + carry.status] === 0n ? 0 : Number(this.states[at + carry.step]) + 1;
  }
}

export class Method {
  constructor(
    readonly data: MethodData,
    private readonly module: Module,
  ) {}

  begin(system: System, choice: Choice, starts: { q: number[]; v: number[] }[], capacity: number): Started {
    return new Started(this.data, this.module, system.data, choice, starts, capacity);
  }

  /** All steps of a run, in pieces. */
  async run(system: System, choice: Choice, pause: Pause): Promise<Run | null> {
    const { slots } = this.data;
    const { steps } = choice;
    const every = Math.max(1, Math.ceil(steps / MOST_ROWS));
    const count = Math.floor(steps / every) + (steps % every ? 1 : 0);
    const begun = this.begin(system, choice, [choice], count);
    let [reached, saved, failed, ms, piece] = [0, 0, 0, 0, 500];
    while (reached < steps && !failed) {
      const stop = Math.min(steps, Math.max(1, Math.ceil((reached + piece) / every)) * every);
      const clock = performance.now();
      begun.to(reached, stop, steps, every, saved);
      const took = performance.now() - clock;
      ms += took;
      failed = begun.failed();
      const to = failed ? failed - 1 : stop;
      saved += Math.floor(to / every) - Math.floor(reached / every) + (to === steps && steps % every ? 1 : 0);
      reached = to;
      piece = Math.max(100, Math.min(1e7, (piece * 30) / Math.max(took, 0.1)));
      if (reached < steps && !(await pause(reached / steps))) return null;
    }
    const rows = new Float64Array((saved + 1) * slots.row);
    rows.set(begun.first);
    rows.set(begun.rows.subarray(0, saved * slots.row), slots.row);
    const looks = system.looks(this.data, choice, rows);
    return { method: this.data.text, form: this.module.form, width: slots.row, every, h: choice.h, rows, looks, failed, ms };
  }

  /** The same run, looked at after every step. */
  async crossings(system: System, choice: Choice, section: Section, pause: Pause): Promise<Crossings | null> {
    const { slots, row, text } = this.data;
    const { steps } = choice;
    const names = keys(system.data);
    const angle = section.key.startsWith("q:") && system.data.angles.includes(section.key.slice(2));
    const watch = new Watch(names.indexOf(section.key), section.value, angle ? system.turn : 0, section.way);
    const state = new Float64Array(names.length);
    const look = (rows: Float64Array, from: number): void => {
      copied(system.data, row, system.turn, rows, from, state, 0);
      watch.take(state);
    };
    const most = Math.min(steps, 2000);
    const begun = this.begin(system, choice, [choice], most);
    look(begun.first, 0);
    let [reached, failed] = [0, 0];
    while (reached < steps && !failed) {
      const stop = Math.min(steps, reached + most);
      begun.to(reached, stop, steps, 1);
      failed = begun.failed();
      const to = failed ? failed - 1 : stop;
      for (let k = 0; k < to - reached; k++) look(begun.rows, k * slots.row);
      reached = to;
      if (reached < steps && !(await pause(reached / steps))) return null;
    }
    watch.end();
    return { method: text, states: Float64Array.from(watch.found), more: watch.more };
  }
}

export async function load(system: SystemData, methods: MethodData[], turn: number): Promise<[System, Method[]]> {
  const own = Module.of(system.module);
  const made = await Promise.all(methods.map(async (data) => new Method(data, await Module.of(data.module))));
  return [new System(system, turn, await own), made];
}
