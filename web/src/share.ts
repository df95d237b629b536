/** What leaves the page: a link with the whole state, Python, CSV. Numbers are written so that they are read back equal. */

import { quantities, times, values } from "./quantities";
import type { Choice, Content, MethodData, Run } from "./types";

export interface View {
  panels: string[]; // keys of the quantities in the plots
  portrait: [string, string];
  t: number;
  speed: number;
  camera: [azimuth: number, elevation: number, zoom: number];
}

const exactly = (x: number): string => (Object.is(x, -0) ? "-0" : String(x));
const joined = (numbers: readonly (number | boolean)[]): string => numbers.map((x) => exactly(Number(x))).join(",");

export function toLink(choice: Choice, view: View): string {
  return new URLSearchParams({
    p: joined(choice.parameters),
    q: joined(choice.q),
    v: joined(choice.v),
    held: joined(choice.held),
    h: String(choice.h),
    n: String(choice.steps),
    m: choice.methods.join(";"),
    plots: view.panels.join(";"),
    portrait: view.portrait.join(";"),
    t: String(view.t),
    speed: String(view.speed),
    camera: joined(view.camera),
  }).toString();
}

function numbers(text: string | null, count: number): number[] | null {
  const found = text === null ? [] : text.split(",").map(Number);
  return text && found.length === count && found.every(Number.isFinite) ? found : null;
}

/** A choice and a view out of a link; what it lacks, or what does not fit, stays as it is. */
export function fromLink(text: string, content: Content, choice: Choice, view: View): [Choice, View] {
  const given = new URLSearchParams(text);
  const n = content.system.coordinates.length;
  const known = new Set(content.methods.map((method) => method.text));
  const keys = new Set(quantities(content).map((x) => x.key));
  const words = (name: string, allowed: Set<string>): string[] =>
    (given.get(name) ?? "").split(";").filter((word) => allowed.has(word));
  const h = Number(given.get("h"));
  const steps = Number(given.get("n"));
  const [methods, panels, portrait] = [words("m", known), words("plots", keys), words("portrait", keys)];
  const [t, speed] = [numbers(given.get("t"), 1), numbers(given.get("speed"), 1)];
  return [
    {
      parameters: numbers(given.get("p"), choice.parameters.length) ?? choice.parameters,
      q: numbers(given.get("q"), n) ?? choice.q,
      v: numbers(given.get("v"), n) ?? choice.v,
      held: numbers(given.get("held"), n)?.map(Boolean) ?? choice.held,
      h: h > 0 && Number.isFinite(h) ? h : choice.h,
      steps: Number.isInteger(steps) && steps > 0 && steps <= MOST_STEPS ? steps : choice.steps,
      methods: methods.length ? methods : choice.methods,
    },
    {
      panels: panels.length === view.panels.length ? panels : view.panels,
      portrait: portrait.length === 2 ? [portrait[0], portrait[1]] : view.portrait,
      t: t ? t[0] : view.t,
      speed: speed && speed[0] > 0 ? speed[0] : view.speed,
      camera: (numbers(given.get("camera"), 3) as View["camera"] | null) ?? view.camera,
    },
  ];
}

export const MOST_STEPS = 10_000_000;

/** A float as Python reads it back equal. */
const python = (x: number): string => (/^-?\d+$/.test(exactly(x)) ? `${exactly(x)}.0` : exactly(x));
const list = (numbers: number[]): string => `[${numbers.map(python).join(", ")}]`;

/** A script that makes the same runs and prints the last row of each. */
export function toPython({ system }: Content, choice: Choice): string {
  let at = 0;
  const parameters = system.parameters.map(({ name, values: given }) => {
    const mine = choice.parameters.slice(at, (at += given.length));
    return `    ${JSON.stringify(name)}: ${mine.length === 1 ? python(mine[0]) : list(mine)},`;
  });
  const changed = parameters.length ? [`system = system.with_parameters({`, ...parameters, `})`] : [];
  return [
    "from noslip import integrators, simulate",
    system.python,
    ...changed,
    `q0 = ${list(choice.q)}  # ${system.coordinates.join(", ")}`,
    `v0 = ${list(choice.v)}`,
    `for method in ${JSON.stringify(choice.methods)}:`,
    "    integrator = integrators.parse(method)",
    `    run = simulate(system, integrator, q0, v0, step_size=${python(choice.h)}, steps=${choice.steps})`,
    "    print(method, run.t[-1].item(), run.q[-1].tolist(), run.v[-1].tolist(), run.energy[-1].item())",
    "",
  ].join("\n");
}

/** One line for each saved time of each method. */
export function toCsv(content: Content, shown: { method: MethodData; run: Run }[]): string {
  const keys = quantities(content).filter((x) => !x.errors);
  const quoted = (word: string): string => (/[",\n]/.test(word) ? `"${word.replaceAll('"', '""')}"` : word);
  const lines = [["method", "t", ...keys.map((x) => x.label)].map(quoted).join(",")];
  for (const { method, run } of shown) {
    const columns = [times(method, run), ...keys.map((x) => values(content, method, run, x.key))];
    for (let k = 0; k < columns[0].length; k++)
      lines.push([quoted(method.text), ...columns.map((column) => String(column[k]))].join(","));
  }
  return `${lines.join("\n")}\n`;
}
