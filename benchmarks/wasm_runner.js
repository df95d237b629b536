// Runs modules of noslip's wasm backend in node. Takes a list of tasks as JSON on stdin, prints one of answers.
// A task has a module in both forms and either `triples` for its multiply-add, or a run: fixed, initial.
"use strict";
const bytes = (text) => Uint8Array.from(Buffer.from(text, "base64"));
const text = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("base64");

function instance(code, free, pages) {
  const memory = new WebAssembly.Memory({ initial: free / 65536 + pages });
  const pointer = new WebAssembly.Global({ value: "i32", mutable: true }, free);
  const env = { __linear_memory: memory, __stack_pointer: pointer };
  return { memory, ...new WebAssembly.Instance(new WebAssembly.Module(code), { env }).exports };
}

function fuses(code, free) {
  if (!WebAssembly.validate(code)) return false;
  return instance(code, free, 0).fused(1 + 2 ** -30, 1 - 2 ** -30, -1) === -(2 ** -60);
}

function multiplied(task, code) {
  const { fused } = instance(code, task.free, 0);
  const given = new Float64Array(bytes(task.triples).buffer);
  return { made: text(Float64Array.from({ length: given.length / 3 }, (_, k) => fused(given[3 * k], given[3 * k + 1], given[3 * k + 2]))) };
}

function ran(task, code) {
  const sizes = [task.fixed, task.initial].map((x) => bytes(x).length);
  const made = 8 * (task.carry + task.row);
  const module = instance(code, task.free, 1 + Math.ceil((sizes[0] + sizes[1] + 2 * made) / 65536));
  const at = [task.free, task.free + sizes[0], task.free + sizes[0] + sizes[1]];
  const rows = at[2] + made;
  const memory = new Uint8Array(module.memory.buffer);
  memory.set(bytes(task.fixed), at[0]);
  memory.set(bytes(task.initial), at[1]);
  let seconds = Infinity;
  for (let k = 0; k < (task.rounds ?? 1); k++) {
    module.start(at[0], at[1], at[2], 1n);
    const begun = performance.now();
    const steps = BigInt(task.steps);
    module.advance(at[0], at[2], rows, 1n, 0n, steps, steps, steps, 1n);
    seconds = Math.min(seconds, (performance.now() - begun) / 1000);
  }
  // a run that fails ends with the row of its last state
  const failed = new BigInt64Array(module.memory.buffer, at[2] + 8 * task.status, 1)[0] !== 0n;
  if (failed) module.save(at[0], at[2], rows, 1n);
  return { seconds, failed, made: text(memory.slice(rows, rows + 8 * task.row)) };
}

const tasks = JSON.parse(require("fs").readFileSync(0, "utf8"));
const answers = tasks.map((task) => {
  const relaxed = !task.plainly && fuses(bytes(task.relaxed), task.free);
  const code = bytes(relaxed ? task.relaxed : task.plain);
  return { form: relaxed ? "relaxed" : "plain", ...(task.triples ? multiplied(task, code) : ran(task, code)) };
});
process.stdout.write(JSON.stringify(answers));
