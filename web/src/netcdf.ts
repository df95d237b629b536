/** A run as NetCDF in its classic form, 64-bit offsets, with the names that `noslip.load` reads. */

import { driven } from "./curves";
import { column, times, values } from "./quantities";
import { python } from "./share";
import type { Choice, Content, MethodData, Run } from "./types";

const [CHAR, INT, DOUBLE] = [2, 4, 6];
const [DIMENSIONS, VARIABLES, ATTRIBUTES] = [10, 11, 12];
const WHOLE = (name: string): boolean => name !== "increment" && name !== "residual";

interface Variable {
  name: string;
  dimensions: string[];
  type: number;
  data: ArrayLike<number>;
}

class Writer {
  private readonly bytes: number[] = [];

  int(x: number): this {
    this.bytes.push((x >>> 24) & 255, (x >>> 16) & 255, (x >>> 8) & 255, x & 255);
    return this;
  }

  long(x: number): this {
    return this.int(Math.floor(x / 2 ** 32)).int(x >>> 0);
  }

  /** Its length, its bytes, and zeros up to a multiple of four. */
  text(x: string): this {
    const coded = new TextEncoder().encode(x);
    this.int(coded.length);
    for (const byte of coded) this.bytes.push(byte);
    while (this.bytes.length % 4) this.bytes.push(0);
    return this;
  }

  get length(): number {
    return this.bytes.length;
  }

  done(): Uint8Array {
    return Uint8Array.from(this.bytes);
  }
}

const size = ({ type, data }: Variable): number => Math.ceil((data.length * (type === DOUBLE ? 8 : type === INT ? 4 : 1)) / 4) * 4;

function header(dimensions: [string, number][], info: string, variables: Variable[], begins: number[]): Uint8Array {
  const w = new Writer();
  w.int(0x43444602).int(0); // CDF, version 2; no records
  w.int(DIMENSIONS).int(dimensions.length);
  for (const [name, length] of dimensions) w.text(name).int(length);
  w.int(ATTRIBUTES).int(1).text("noslip").int(CHAR).text(info);
  w.int(VARIABLES).int(variables.length);
  variables.forEach((variable, k) => {
    w.text(variable.name).int(variable.dimensions.length);
    for (const name of variable.dimensions) w.int(dimensions.findIndex((x) => x[0] === name));
    w.int(0).int(0).int(variable.type).int(size(variable)).long(begins[k]);
  });
  return w.done();
}

function file(dimensions: [string, number][], info: string, variables: Variable[]): Uint8Array<ArrayBuffer> {
  const before = header(dimensions, info, variables, variables.map(() => 0)).length;
  let end = before;
  const begins = variables.map((variable) => (end += size(variable)) - size(variable));
  const made = new Uint8Array(end);
  made.set(header(dimensions, info, variables, begins));
  const view = new DataView(made.buffer);
  variables.forEach(({ type, data }, v) => {
    for (let k = 0; k < data.length; k++) {
      if (type === DOUBLE) view.setFloat64(begins[v] + 8 * k, data[k]);
      else if (type === INT) view.setInt32(begins[v] + 4 * k, data[k]);
      else made[begins[v] + k] = data[k];
    }
  });
  return made;
}

/** Columns side by side as rows. */
function rows(columns: Float64Array[]): Float64Array {
  const made = new Float64Array(columns.length * (columns[0]?.length ?? 0));
  columns.forEach((x, k) => x.forEach((y, i) => (made[i * columns.length + k] = y)));
  return made;
}

function names(words: string[]): { length: number; data: Uint8Array } {
  const coded = words.map((word) => new TextEncoder().encode(word));
  const length = Math.max(1, ...coded.map((x) => x.length));
  const data = new Uint8Array(length * words.length);
  coded.forEach((x, k) => data.set(x, k * length));
  return { length, data };
}

/** The record of the run, as noslip writes it. */
function record({ system }: Content, choice: Choice, method: MethodData, run: Run): string {
  let at = 0;
  const parameters = system.parameters.map(({ name, values: given }) => {
    const mine = choice.parameters.slice(at, (at += given.length)).map(python);
    return `${JSON.stringify(name)}: ${mine.length === 1 ? mine[0] : `[${mine.join(", ")}]`}`;
  });
  const own = `{${parameters.join(", ")}}`;
  return `{${method.info}, "parameters": ${own}, "arguments": ${own}, "step_size": ${python(choice.h)}, "steps": ${choice.steps}, "save_every": ${run.every}}`;
}

function report(method: MethodData, run: Run): Variable[] {
  const whole = new BigInt64Array(run.rows.buffer, run.rows.byteOffset, run.rows.length);
  const count = run.rows.length / run.width;
  return Object.entries(method.row.report).map(([name, slot]) => {
    const data = WHOLE(name) ? Float64Array.from({ length: count }, (_, k) => Number(whole[k * run.width + slot])) : column(run, slot);
    return { name: `report_${name}`, dimensions: ["time"], type: WHOLE(name) ? INT : DOUBLE, data };
  });
}

export function toNetcdf(content: Content, choice: Choice, method: MethodData, run: Run): Uint8Array<ArrayBuffer> {
  const { system } = content;
  const { row } = method;
  const [n, m, k] = [system.coordinates.length, system.constraints, system.holonomic];
  const some = (slot: number, count: number): Float64Array => rows(Array.from({ length: count }, (_, i) => column(run, slot + i)));
  const of = (name: string, dimensions: string[], data: ArrayLike<number>): Variable => ({ name, dimensions, type: DOUBLE, data });
  const labels = names(system.coordinates);
  const variables = [
    of("time", ["time"], times(method, run)),
    of("q", ["time", "coordinate"], rows(system.coordinates.map((x) => values(content, method, run, `q:${x}`)))),
    of("v", ["time", "coordinate"], some(row.v[0], n)),
    of("multiplier_t", ["time"], column(run, row.multiplier_t[0])),
    of("energy", ["time"], column(run, row.energy[0])),
    of("energy_scale", ["time"], column(run, row.energy_scale[0])),
    of("q0", ["coordinate"], choice.q),
    of("v0", ["coordinate"], choice.v),
    { name: "coordinate", dimensions: ["coordinate", "letter"], type: CHAR, data: labels.data },
    ...report(method, run),
    ...Object.entries(row.integrals).map(([name, slot]) => of(`integral_${name}`, ["time"], column(run, slot))),
  ];
  const dimensions: [string, number][] = [["time", run.rows.length / run.width], ["coordinate", n], ["letter", labels.length]];
  if (m) {
    dimensions.push(["constraint", m]);
    variables.push(of("multipliers", ["time", "constraint"], some(row.multipliers[0], m)), of("constraint_residual", ["time", "constraint"], some(row.constraint[0], m)));
  }
  if (k) {
    dimensions.push(["holonomic", k]);
    const parts: [string, number][] = [["multipliers", row.multipliers[0] + m], ["residual", row.holonomic[0]], ["rate", row.constraint[0] + m]];
    for (const [name, slot] of parts) variables.push(of(`holonomic_${name}`, ["time", "holonomic"], some(slot, k)));
  }
  if (choice.curves.some((x) => x.on)) {
    dimensions.push(["input", choice.steps]);
    const given = driven(system, choice);
    const count = system.inputs.length;
    system.inputs.forEach((name, i) => variables.push(of(`input_${name}`, ["input"], Float64Array.from({ length: choice.steps }, (_, s) => given[s * count + i]))));
  }
  return file(dimensions, record(content, choice, method, run), variables);
}
