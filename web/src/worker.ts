/** Long runs beside the page: modules are loaded here, and a new request ends those before it. */

import { members } from "./cloud";
import { load, Method, Module, type Pause, type System } from "./engine";
import type { Asked, Choice, Told } from "./types";

const BREATH = 25; // milliseconds of work between looks at what else was asked

let system: System;
let methods = new Map<string, Method>();
const latest = { run: 0, section: 0, cloud: 0 };
let before: Promise<void> = Promise.resolve(); // requests share the memory of a module: one after the other

function tell(message: Told, transfer: Transferable[] = []): void {
  (self as unknown as Worker).postMessage(message, transfer);
}

const breath = (): Promise<void> =>
  new Promise((done) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => done();
    channel.port2.postMessage(0);
  });

/** For part k of n of a request: tells how far it is, and whether nothing newer makes it useless. */
function pause(kind: "run" | "section" | "cloud", id: number, k: number, n: number): Pause {
  const { run } = latest;
  let stamp = performance.now();
  return async (part) => {
    if (performance.now() - stamp > BREATH) {
      tell({ kind: "progress", id, part: (k + part) / n });
      await breath();
      stamp = performance.now();
    }
    return latest.run === run && latest[kind] === id;
  };
}

const chosen = (choice: Choice): Method[] => choice.methods.map((text) => methods.get(text)).filter((x) => x !== undefined);

/** What `make` gives for each chosen method; null where something newer was asked meanwhile. */
async function each<T>(asked: { kind: "run" | "section"; id: number; choice: Choice }, make: (method: Method, pause: Pause) => Promise<T | null>): Promise<T[] | null> {
  const all = chosen(asked.choice);
  const found: T[] = [];
  for (const [k, method] of all.entries()) {
    const made = await make(method, pause(asked.kind, asked.id, k, all.length));
    if (made === null) return null;
    found.push(made);
  }
  return found;
}

async function answer(asked: Asked): Promise<void> {
  if ("id" in asked && latest[asked.kind] !== asked.id) return;
  if (asked.kind === "load") {
    const [own, made] = await load(asked.system, asked.methods, asked.turn);
    system = own;
    methods = new Map(made.map((method) => [method.data.text, method]));
    tell({ kind: "ready" });
  } else if (asked.kind === "add") {
    methods.set(asked.method.text, new Method(asked.method, await Module.of(asked.method.module)));
    tell({ kind: "ready" });
  } else if (asked.kind === "run") {
    if (asked.held) {
      const start = system.start(asked.choice, asked.held);
      tell({ kind: "start", id: asked.id, start });
      if (!start) return;
      [asked.choice.q, asked.choice.v] = [start.q, start.v];
    }
    const runs = await each(asked, (method, wait) => method.run(system, asked.choice, wait));
    if (runs) tell({ kind: "run", id: asked.id, runs }, runs.flatMap((run) => [run.rows.buffer, run.looks.buffer]));
  } else if (asked.kind === "section") {
    const found = await each(asked, (method, wait) => method.crossings(system, asked.choice, asked.section, wait));
    if (found) tell({ kind: "section", id: asked.id, found });
  } else {
    const [method] = chosen(asked.choice);
    const made = method && (await members(system, method, asked.choice, asked.cloud, pause("cloud", asked.id, 0, 1)));
    if (made) tell({ kind: "cloud", id: asked.id, members: made }, [made.states.buffer, made.points.buffer]);
  }
}

self.onmessage = (event: MessageEvent<Asked>): void => {
  const asked = event.data;
  if ("id" in asked) latest[asked.kind] = asked.id;
  before = before.then(() => answer(asked)).catch((error: unknown) => tell({ kind: "error", text: String(error) }));
};
