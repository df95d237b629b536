/** Modules of noslip's WebAssembly backend: which form rounds once, and how their functions are called. */

import type { Choice, MethodData, ModuleData, Run, SystemData } from "./types";

const PAGE = 65536;
export const MOST_ROWS = 4000; // of a run; longer ones keep every k-th state and the last

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
    private readonly module: Module,
  ) {}

  /** A position and velocity on the constraints; `off` above 1 says that there are none near. */
  onto(choice: Choice, held: boolean[]): { q: number[]; v: number[]; off: number } {
    const n = this.data.coordinates.length;
    const { at, views } = this.module.tables(choice.parameters.length, this.data.onto.in, this.data.onto.out);
    views[0].set(choice.parameters);
    views[1].set([...choice.q, ...choice.v, ...held.map(Number)]);
    this.module.call("onto", at[0], at[1], at[2], 1n);
    const out = Array.from(views[2]);
    return { q: out.slice(0, n), v: out.slice(n, 2 * n), off: out[2 * n] };
  }

  /** The numbers of the scene at every row. */
  looks(method: MethodData, choice: Choice, rows: Float64Array): Float64Array {
    const { row, slots } = method;
    const n = this.data.coordinates.length;
    const count = rows.length / slots.row;
    const given = this.data.look;
    const lam = this.data.constraints + this.data.holonomic;
    const { at, views } = this.module.tables(choice.parameters.length, given.in, given.out);
    views[0].set(choice.parameters);
    const made = new Float64Array(count * given.out);
    for (let k = 0; k < count; k++) {
      const here = k * slots.row;
      views[1].set(rows.subarray(here + row.q[0], here + row.q[0] + n));
      views[1].set(rows.subarray(here + row.multipliers[0], here + row.multipliers[0] + lam), n);
      views[1][n + lam] = rows[here + row.t[0]];
      this.module.call("look", at[0], at[1], at[2], 1n);
      made.set(views[2], k * given.out);
    }
    return made;
  }
}

export class Method {
  constructor(
    readonly data: MethodData,
    private readonly module: Module,
  ) {}

  /** All steps of a run, in pieces: `pause` is awaited between them and says whether to go on. */
  async run(system: System, choice: Choice, pause: (part: number) => Promise<boolean>): Promise<Run | null> {
    const { slots, carry } = this.data;
    const { h, steps } = choice;
    const every = Math.max(1, Math.ceil(steps / MOST_ROWS));
    const count = Math.floor(steps / every) + (steps % every ? 1 : 0);
    const { at, views } = this.module.tables(slots.fixed, slots.initial, slots.carry + slots.row, count * slots.row);
    const [fixed, initial, made, rows] = views;
    fixed.set([...choice.parameters, h]);
    initial.fill(0);
    initial.set([...choice.q, ...choice.v, 0]);
    this.module.call("start", at[0], at[1], at[2], 1n);
    const first = made.slice(slots.carry);
    const whole = new BigInt64Array(this.module.memory.buffer, at[2], slots.carry);
    let [reached, saved, failed, ms, piece] = [0, 0, 0, 0, 500];
    while (reached < steps && !failed) {
      const stop = Math.min(steps, Math.max(1, Math.ceil((reached + piece) / every)) * every);
      const begun = performance.now();
      const place = at[3] + 8 * slots.row * saved;
      const numbers = [reached, stop, steps, every, count - saved].map(BigInt);
      this.module.call("advance", at[0], at[2], place, 1n, ...numbers);
      const took = performance.now() - begun;
      ms += took;
      if (whole[carry.status] !== 0n) failed = Number(whole[carry.step]) + 1;
      const to = failed ? failed - 1 : stop;
      saved += Math.floor(to / every) - Math.floor(reached / every) + (to === steps && steps % every ? 1 : 0);
      reached = to;
      piece = Math.max(100, Math.min(1e7, (piece * 30) / Math.max(took, 0.1)));
      if (reached < steps && !(await pause(reached / steps))) return null;
    }
    const all = new Float64Array((saved + 1) * slots.row);
    all.set(first);
    all.set(rows.subarray(0, saved * slots.row), slots.row);
    const looks = system.looks(this.data, choice, all);
    return { method: this.data.text, form: this.module.form, width: slots.row, rows: all, looks, failed, ms };
  }
}

export async function load(system: SystemData, methods: MethodData[]): Promise<[System, Method[]]> {
  const own = Module.of(system.module);
  const made = await Promise.all(methods.map(async (data) => new Method(data, await Module.of(data.module))));
  return [new System(system, await own), made];
}
