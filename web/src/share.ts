/** What leaves the page: a link with the whole state, Python, CSV. Numbers are written so that they are read back equal. */

import { MOST_MEMBERS } from "./cloud";
import { place, read, written } from "./curves";
import { quantities, times, values } from "./quantities";
import { keys as stateKeys } from "./states";
import type { Choice, Cloud, Content, Curve, MethodData, Run, Section } from "./types";

export interface View {
  panels: string[]; // keys of the quantities in the plots
  portrait: [string, string];
  section: Section;
  cloud: Cloud;
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
    ...(view.section.key ? { section: [view.section.key, exactly(view.section.value), view.section.way].join(";") } : {}),
    ...(view.cloud.members ? { cloud: joined([view.cloud.members, view.cloud.spread]) } : {}),
    ...Object.fromEntries(choice.curves.flatMap((curve, k) => (curve.on ? [[`curve${k}`, `${curve.between} ${written(curve.points)}`]] : []))),
    t: String(view.t),
    speed: String(view.speed),
    camera: joined(view.camera),
  }).toString();
}

function numbers(text: string | null, count: number): number[] | null {
  const found = text === null ? [] : text.split(",").map(Number);
  return text && found.length === count && found.every(Number.isFinite) ? found : null;
}

function curve(text: string | null, old: Curve): Curve {
  const [between, rest] = (text ?? "").split(/ (.*)/s);
  const points = read(rest ?? "");
  return points && (between === "hold" || between === "linear") ? { on: true, between, points } : old;
}

function section(text: string | null, content: Content, old: Section): Section {
  const [key, value, way] = (text ?? "").split(";");
  const good = stateKeys(content.system).includes(key) && numbers(value, 1) !== null && ["-1", "0", "1"].includes(way);
  return good ? { key, value: Number(value), way: Number(way) as Section["way"] } : old;
}

function cloud(text: string | null, old: Cloud): Cloud {
  const found = numbers(text, 2);
  const good = found && Number.isInteger(found[0]) && found[0] >= 0 && found[0] <= MOST_MEMBERS && found[1] >= 0;
  return good ? { members: found[0], spread: found[1] } : old;
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
      curves: choice.curves.map((old, k) => curve(given.get(`curve${k}`), old)),
    },
    {
      panels: panels.length === view.panels.length ? panels : view.panels,
      portrait: portrait.length === 2 ? [portrait[0], portrait[1]] : view.portrait,
      section: section(given.get("section"), content, view.section),
      cloud: cloud(given.get("cloud"), view.cloud),
      t: t ? t[0] : view.t,
      speed: speed && speed[0] > 0 ? speed[0] : view.speed,
      camera: (numbers(given.get("camera"), 3) as View["camera"] | null) ?? view.camera,
    },
  ];
}

export const MOST_STEPS = 10_000_000;

/** A float as Python reads it back equal. */
export const python = (x: number): string => (/^-?\d+$/.test(exactly(x)) ? `${exactly(x)}.0` : exactly(x));
const list = (numbers: number[]): string => `[${numbers.map(python).join(", ")}]`;

/** The inputs of every step, by the operations of `curves.driven` in their order. */
function inputs({ system }: Content, choice: Choice): string[] {
  if (!choice.curves.some((x) => x.on)) return [];
  const lines = system.inputs.map((name, k) => {
    const { on, between, points } = choice.curves[k];
    if (!on) return `    ${JSON.stringify(name)}: np.full(len(t), ${python(choice.parameters[place(system, name)])}),`;
    return `    ${JSON.stringify(name)}: curve(${list(points.map((x) => x[0]))}, ${list(points.map((x) => x[1]))}, ${between === "linear" ? "True" : "False"}),`;
  });
  return [
    `t = (np.arange(${choice.steps}) + 0.5) * ${python(choice.h)}  # the middle of each step`,
    "",
    "",
    "def curve(times, values, linear):",
    "    times, values = np.array(times), np.array(values)",
    '    k = np.searchsorted(times, t, side="right") - 1',
    "    slopes = np.append(np.diff(values) / np.diff(times), 0.0) if linear else np.zeros(len(times))",
    "    return values[k] + slopes[k] * (t - times[k])",
    "",
    "",
    "inputs = {",
    ...lines,
    "}",
  ];
}

/** A script that makes the same runs and prints the last row of each. */
export function toPython(content: Content, choice: Choice): string {
  const { system } = content;
  const driven = inputs(content, choice);
  let at = 0;
  const parameters = system.parameters.map(({ name, values: given }) => {
    const mine = choice.parameters.slice(at, (at += given.length));
    return `    ${JSON.stringify(name)}: ${mine.length === 1 ? python(mine[0]) : list(mine)},`;
  });
  const changed = parameters.length ? [`system = system.with_parameters({`, ...parameters, `})`] : [];
  return [
    ...(driven.length ? ["import numpy as np", ""] : []),
    "from noslip import integrators, simulate",
    system.python,
    ...changed,
    `q0 = ${list(choice.q)}  # ${system.coordinates.join(", ")}`,
    `v0 = ${list(choice.v)}`,
    ...driven,
    `for method in ${JSON.stringify(choice.methods)}:`,
    "    integrator = integrators.parse(method)",
    `    run = simulate(system, integrator, q0, v0, step_size=${python(choice.h)}, steps=${choice.steps}${driven.length ? ", inputs=inputs" : ""})`,
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
