/** Sliders and fields for all that a run is made from. */

import { MOST_MEMBERS } from "./cloud";
import { place } from "./curves";
import { Dial, el } from "./dom";
import { CurveEditor } from "./editor";
import { MOST_STEPS } from "./share";
import type { Choice, Cloud, Content, SystemData } from "./types";

/** What was moved: a speed by its index, or anything else, after which no speed but the held ones is kept. */
export type Moved = number | null;

export class Controls {
  readonly element: HTMLElement;
  private readonly dials = { parameters: [] as { dial: Dial; place: number }[], q: [] as Dial[], v: [] as Dial[] };
  private readonly boxes: HTMLInputElement[] = [];
  private readonly h: Dial;
  private readonly steps: Dial;
  private readonly editors: CurveEditor[];

  constructor(
    { system }: Content,
    private readonly choice: Choice,
    cloud: Cloud,
    now: () => number,
    changed: (moved: Moved, onto: boolean) => void,
    gather: () => void,
  ) {
    const group = (title: string, open: boolean, ...children: Node[]): HTMLElement =>
      el("details", { open }, el("summary", {}, title), ...children);
    let at = 0;
    for (const { name, values } of system.parameters) {
      const place = at;
      at += values.length;
      if (values.length !== 1 || system.inputs.includes(name)) continue; // a table has no slider
      const dial = new Dial(name, choice.parameters[place], around(values[0]), (x) => {
        choice.parameters[place] = x;
        changed(null, true);
      });
      this.dials.parameters.push({ dial, place });
    }
    system.coordinates.forEach((name, k) => {
      const reach: [number, number] = system.angles.includes(name) ? [-Math.PI, Math.PI] : [-3, 3];
      this.dials.q.push(new Dial(name, choice.q[k], reach, (x) => {
        choice.q[k] = x;
        changed(null, true);
      }));
      const box = el("input", { type: "checkbox", checked: choice.held[k], title: "keep this speed when others are moved", "aria-label": `keep d${name}/dt` });
      box.addEventListener("change", () => {
        choice.held[k] = box.checked;
        changed(null, false);
      });
      this.boxes.push(box);
      this.dials.v.push(new Dial(`d${name}/dt`, choice.v[k], [-3, 3], (x) => {
        choice.v[k] = x;
        changed(k, true);
      }, [box]));
    });
    this.h = new Dial("step", choice.h, [0.001, 0.5], (x) => {
      if (!(x > 0)) return this.show();
      choice.h = x;
      changed(null, false);
    });
    this.steps = new Dial("steps", choice.steps, [10, 5000], (x) => {
      choice.steps = Math.min(x, MOST_STEPS);
      changed(null, false);
    }, [], 1);
    this.editors = this.inputs(system, now, () => changed(null, false));
    const some = this.dials.parameters.map(({ dial }) => dial.element);
    this.element = el("div", { className: "controls" },
      group("Step and length", true, this.h.element, this.steps.element),
      ...(some.length ? [group("Parameters", true, ...some)] : []),
      ...(this.editors.length ? [group("Inputs", true, ...this.editors.map((editor) => editor.element))] : []),
      group("Initial position", false, ...this.dials.q.map((dial) => dial.element)),
      group("Initial velocity", true,
        el("p", { className: "hint" }, system.constraints + system.holonomic
          ? "The others follow along the constraint; ticked ones stay." : "There are no constraints."),
        ...this.dials.v.map((dial) => dial.element)),
      group("Cloud", cloud.members > 0, ...cloudDials(cloud, gather)),
    );
  }

  /** A slider for each input, and its curve. */
  private inputs(system: SystemData, now: () => number, changed: () => void): CurveEditor[] {
    const { choice } = this;
    return system.inputs.map((name, k) => {
      const at = place(system, name);
      const constant = { get: () => choice.parameters[at], set: (x: number) => (choice.parameters[at] = x) };
      return new CurveEditor(name, choice.curves[k], constant, () => choice.steps * choice.h, now, changed);
    });
  }

  /** The numbers of the choice, where somebody else has changed them. */
  show(): void {
    const { choice } = this;
    this.dials.parameters.forEach(({ dial, place }) => dial.show(choice.parameters[place]));
    this.dials.q.forEach((dial, k) => dial.show(choice.q[k]));
    this.dials.v.forEach((dial, k) => dial.show(choice.v[k]));
    this.boxes.forEach((box, k) => (box.checked = choice.held[k]));
    this.h.show(choice.h);
    this.steps.show(choice.steps);
    this.editors.forEach((editor) => editor.show());
  }

  /** Those of the state alone, but not the one that is being moved. */
  showState(moved: Moved): void {
    this.dials.q.forEach((dial, k) => dial.field === document.activeElement || dial.slider === document.activeElement || dial.show(this.choice.q[k]));
    this.dials.v.forEach((dial, k) => k === moved || dial.show(this.choice.v[k]));
  }
}

function cloudDials(cloud: Cloud, gather: () => void): Node[] {
  const members = new Dial("members", cloud.members, [0, 1000], (x) => {
    cloud.members = Math.min(x, MOST_MEMBERS);
    gather();
  }, [], 0);
  const spread = new Dial("spread", cloud.spread, [0, 0.5], (x) => {
    cloud.spread = Math.abs(x);
    gather();
  });
  const hint = "Starts around yours, normally distributed in every coordinate and velocity and put on the constraint; they run by the first method.";
  return [el("p", { className: "hint" }, hint), members.element, spread.element];
}

function around(value: number): [number, number] {
  if (value === 0) return [-1, 1];
  return value > 0 ? [value / 20, 3 * value] : [3 * value, value / 20];
}
