/** Long runs beside the page: modules are loaded here, and a new request ends the one before it. */

import { load, Method, Module, type System } from "./engine";
import type { Asked, Run, Told } from "./types";

let system: System;
let methods = new Map<string, Method>();
let latest = 0;

function tell(message: Told, transfer: Transferable[] = []): void {
  (self as unknown as Worker).postMessage(message, transfer);
}

const breath = (): Promise<void> => new Promise((done) => setTimeout(done, 0));

async function answer(asked: Asked): Promise<void> {
  if (asked.kind === "load") {
    const [own, made] = await load(asked.system, asked.methods);
    system = own;
    methods = new Map(made.map((method) => [method.data.text, method]));
    tell({ kind: "ready" });
  } else if (asked.kind === "add") {
    methods.set(asked.method.text, new Method(asked.method, await Module.of(asked.method.module)));
    tell({ kind: "ready" });
  } else if (asked.kind === "onto") {
    tell({ kind: "onto", id: asked.id, ...system.onto(asked.choice, asked.held) });
  } else {
    latest = asked.id;
    const chosen = asked.choice.methods.map((text) => methods.get(text)).filter((x) => x !== undefined);
    const runs: Run[] = [];
    for (const [k, method] of chosen.entries()) {
      const run = await method.run(system, asked.choice, async (part) => {
        tell({ kind: "progress", id: asked.id, part: (k + part) / chosen.length });
        await breath();
        return latest === asked.id;
      });
      if (run === null) return;
      runs.push(run);
    }
    tell({ kind: "run", id: asked.id, runs }, runs.flatMap((run) => [run.rows.buffer, run.looks.buffer]));
  }
}

self.onmessage = (event: MessageEvent<Asked>): void => {
  answer(event.data).catch((error: unknown) => tell({ kind: "error", text: String(error) }));
};
