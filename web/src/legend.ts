/** The methods side by side: which run, in which colour and line, and what came of them. */

import { el, select } from "./dom";
import type { Choice, Content, Run } from "./types";

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]; // of Okabe and Ito
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 2], [12, 4]];

export class Legend {
  readonly element = el("div", { className: "legend" });

  constructor(
    private readonly content: Content,
    private readonly choice: Choice,
    private readonly changed: () => void,
  ) {}

  look(text: string): { colour: string; dash: number[] } {
    const k = this.content.methods.findIndex((x) => x.text === text) % COLOURS.length;
    return { colour: COLOURS[k], dash: DASHES[k] };
  }

  show(): void {
    this.element.replaceChildren(...this.content.methods.map((method) => {
      const { colour, dash } = this.look(method.text);
      const box = el("input", { type: "checkbox", checked: this.choice.methods.includes(method.text) });
      box.addEventListener("change", () => {
        const wanted = new Set(this.choice.methods);
        if (box.checked) wanted.add(method.text);
        else wanted.delete(method.text);
        this.choice.methods = this.content.methods.map((x) => x.text).filter((text) => wanted.has(text));
        this.changed();
      });
      const line = `<svg viewBox="0 0 28 8" aria-hidden="true"><line x1="0" y1="4" x2="28" y2="4" stroke="${colour}" stroke-width="3" stroke-dasharray="${dash.join(" ")}"/></svg>`;
      const swatch = el("span", { className: "swatch", innerHTML: line });
      const title = `order ${method.order}; keeps ${method.preserves.join(", ") || "nothing exactly"}`;
      return el("label", { title }, box, swatch, el("span", {}, method.name), el("span", { className: "note" }));
    }));
  }

  /** How the runs went. */
  note(runs: Run[]): void {
    const notes = [...this.element.querySelectorAll(".note")];
    this.content.methods.forEach((method, k) => {
      const run = runs.find((x) => x.method === method.text);
      notes[k].textContent = run ? (run.failed ? `failed at step ${run.failed}` : `${run.ms.toFixed(1)} ms`) : "";
    });
  }
}

/** A field that searches the catalogue. */
export function catalogue(names: string[], say: (text: string) => void): HTMLElement {
  const list = el("datalist", { id: "systems" }, ...names.map((name) => el("option", { value: name })));
  const field = el("input", { type: "search", placeholder: "another system", "aria-label": "another system of the catalogue" });
  field.setAttribute("list", "systems");
  field.addEventListener("change", () => {
    if (names.includes(field.value)) location.href = `?system=${encodeURIComponent(field.value)}`;
    else say(`there is no system '${field.value}' in the catalogue`);
  });
  return el("label", { className: "catalogue" }, field, list);
}

/** More methods, for a page that is served. */
export function another(names: string[], chosen: (name: string) => void): HTMLElement {
  const options = ["", ...names].map((x): [string, string] => [x, x || "another method ..."]);
  const chooser = select("another method", options, "", (name) => {
    chooser.value = "";
    chosen(name);
  });
  return chooser;
}

/** Methods that the system has no use for, and why. */
export function refused(content: Content): HTMLElement[] {
  return content.refused.map((x) => el("p", { className: "hint" }, `${x.name}: ${x.reason}`));
}

/** The works that the methods come from. */
export function references(content: Content): HTMLElement[] {
  const works = new Map(content.methods.flatMap((x) => x.works));
  const cited = [...works].map(([text, url]) => el("li", {}, url ? el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, text) : text));
  return works.size ? [el("details", {}, el("summary", {}, "References"), el("ul", { className: "hint" }, ...cited))] : [];
}
