/** One quantity against another: curves, or the points of a Poincare section, and the cloud of members. */

import { el, filled, mark, select, trace } from "./dom";
import { briefly, inks, type Shown } from "./plots";
import { quantities, values } from "./quantities";
import { keys } from "./states";
import type { Content, Crossings, Members, Section } from "./types";

type Points = { x: ArrayLike<number>; y: ArrayLike<number>; colour: string; dash: number[] };

export class Portrait {
  readonly element: HTMLElement;
  readonly canvas = el("canvas", { className: "portrait", role: "img", "aria-label": "phase portrait" });
  private readonly still = document.createElement("canvas"); // all but what moves
  private readonly note = el("span", { className: "hint" });
  private readonly names: string[];
  private curves: Points[] = [];
  private box: [number, number, number, number] = [0, 1, 0, 1];
  private shown: Shown[] = [];
  private found: Crossings[] = [];
  private cloud: { members: Members; colour: string } | null = null;
  private frames: number[] = [];
  private t = 0;

  constructor(
    private readonly content: Content,
    public pair: [string, string],
    private readonly section: Section,
    changed: () => void,
    private readonly cut: () => void,
  ) {
    this.names = keys(content.system);
    const options = quantities(content).filter((x) => !x.errors).map((x): [string, string] => [x.key, x.label]);
    const chosen = (k: 0 | 1) => (value: string): void => {
      this.pair[k] = value;
      this.draw(this.shown);
      changed();
    };
    const across = select("across", options, pair[0], chosen(0));
    const upward = select("upward", options, pair[1], chosen(1));
    const head = el("div", { className: "pair" }, upward, el("span", {}, "against"), across);
    this.element = el("section", { className: "panel" }, head, this.sections(options), el("div", { className: "plot" }, this.canvas));
    new ResizeObserver(() => this.paint()).observe(this.canvas);
  }

  private sections(options: [string, string][]): HTMLElement {
    const { section } = this;
    const key = select("section", [["", "no section"], ...options.map(([k, label]): [string, string] => [k, `section at ${label}`])], section.key, (x) => {
      section.key = x;
      [value, way].forEach((y) => (y.hidden = !x));
      this.cut();
    });
    const value = el("input", { type: "text", inputMode: "decimal", className: "exact", "aria-label": "value of the section", value: String(section.value), hidden: !section.key });
    value.addEventListener("change", () => {
      const x = Number(value.value);
      const good = value.value.trim() !== "" && Number.isFinite(x);
      mark(value, good);
      if (!good) return;
      section.value = x;
      this.cut();
    });
    const ways: [string, string][] = [["0", "either way"], ["1", "growing"], ["-1", "falling"]];
    const way = select("way through the section", ways, String(section.way), (x) => {
      section.way = Number(x) as Section["way"];
      this.cut();
    });
    way.hidden = !section.key;
    return el("div", { className: "pair section" }, key, value, way, this.note);
  }

  /** New runs: their crossings and members come later. */
  draw(shown: Shown[]): void {
    if (shown !== this.shown) {
      this.cloud = null;
      if (this.section.key) this.note.textContent = "...";
    }
    this.shown = shown;
    this.look();
  }

  /** The points of the section; none, where there is no section. */
  crossed(found: Crossings[]): void {
    this.found = found;
    const width = this.names.length;
    const counts = found.map((x) => `${x.more ? "more than " : ""}${x.states.length / width}`);
    this.note.textContent = this.section.key ? `${counts.join(", ")} points` : "";
    this.look();
  }

  gathered(members: Members, colour: string): void {
    this.cloud = { members, colour };
    this.look();
  }

  /** The cloud goes. */
  scatter(): void {
    this.cloud = null;
    this.look();
  }

  private column(states: ArrayLike<number>, key: string): Float64Array {
    const [width, at] = [this.names.length, this.names.indexOf(key)];
    return Float64Array.from({ length: states.length / width }, (_, k) => states[k * width + at]);
  }

  /** The angles of a section lie within one turn. */
  private wrapped(found: Crossings, key: string): Float64Array {
    const column = this.column(found.states, key);
    const { system, turn } = this.content;
    if (!key.startsWith("q:") || !system.angles.includes(key.slice(2))) return column;
    return column.map((x) => x - turn * Math.round(x / turn));
  }

  private look(): void {
    const [a, b] = this.pair;
    const cut = this.section.key !== "";
    this.curves = this.shown.map(({ method, run, colour, dash }) => {
      const found = this.found.find((x) => x.method === method.text) ?? { method: "", states: new Float64Array(), more: false };
      const of = (key: string): Float64Array => (cut ? this.wrapped(found, key) : values(this.content, method, run, key));
      return { x: of(a), y: of(b), colour, dash };
    });
    const seen = [...this.curves];
    if (this.cloud && !cut) {
      const { states } = this.cloud.members;
      seen.push({ x: this.column(states, a), y: this.column(states, b), colour: "", dash: [] });
    }
    const range = (name: "x" | "y"): [number, number] => {
      let [low, high] = [Infinity, -Infinity];
      for (const curve of seen)
        for (let k = 0; k < curve[name].length; k++) {
          const x = curve[name][k];
          if (x < low && Number.isFinite(x)) low = x;
          if (x > high && Number.isFinite(x)) high = x;
        }
      if (low > high) return [0, 1];
      const gap = 0.05 * (high - low) || 0.5;
      return [low - gap, high + gap];
    };
    this.box = [...range("x"), ...range("y")];
    this.paint();
  }

  private at(): (x: number, y: number) => [number, number] {
    const [w, h] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const [x0, x1, y0, y1] = this.box;
    const [left, top, right, bottom] = [52, 8, w - 10, h - 24];
    return (x, y) => [left + ((x - x0) / (x1 - x0)) * (right - left), bottom - ((y - y0) / (y1 - y0)) * (bottom - top)];
  }

  /** What stands still: the frame, its numbers, curves or points. */
  private paint(): void {
    const [w, h] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const { ink, grid, ground } = inks();
    const context = w ? filled(this.still, w, h, ground) : null;
    if (!context) return;
    if (this.canvas.width !== this.still.width) this.canvas.width = this.still.width;
    if (this.canvas.height !== this.still.height) this.canvas.height = this.still.height;
    const [x0, x1, y0, y1] = this.box;
    const at = this.at();
    const [[left, bottom], [right, top]] = [at(x0, y0), at(x1, y1)];
    context.strokeStyle = grid;
    context.strokeRect(left, top, right - left, bottom - top);
    context.fillStyle = ink;
    context.font = "11px system-ui, sans-serif";
    for (const [x, align] of [[x0, "left"], [x1, "right"]] as const) {
      context.textAlign = align;
      context.fillText(briefly(Number(x.toPrecision(3))), align === "left" ? left : right, h - 8);
    }
    context.textAlign = "right";
    context.fillText(briefly(Number(y1.toPrecision(3))), left - 4, top + 8);
    context.fillText(briefly(Number(y0.toPrecision(3))), left - 4, bottom);
    for (const { x, y, colour, dash } of this.curves) {
      context.strokeStyle = context.fillStyle = colour;
      context.lineWidth = 1.4;
      context.setLineDash(dash);
      context.beginPath();
      const size = x.length > 3000 ? 1.2 : 2.4;
      if (this.section.key) {
        for (let k = 0; k < x.length; k++) {
          const [px, py] = at(x[k], y[k]);
          context.fillRect(px - size / 2, py - size / 2, size, size);
        }
      } else trace(context, x.length, (k) => at(x[k], y[k]));
      context.stroke();
    }
    this.now([], this.t);
  }

  /** The states at the time t: rows of the runs, and members of the cloud. */
  now(frames: number[], t: number): void {
    if (frames.length) this.frames = frames;
    this.t = t;
    const context = this.canvas.getContext("2d");
    if (!context || !this.canvas.width || !this.still.width) return;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.still, 0, 0);
    const ratio = devicePixelRatio || 1;
    context.scale(ratio, ratio);
    if (this.section.key) return;
    const at = this.at();
    if (this.cloud) {
      const { members, colour } = this.cloud;
      const [width, a, b] = [this.names.length, ...this.pair.map((key) => this.names.indexOf(key))];
      const from = frameAt(members.times, t) * members.count;
      context.fillStyle = colour;
      context.globalAlpha = 0.55;
      for (let k = from; k < from + members.count; k++) {
        const [x, y] = at(members.states[k * width + a], members.states[k * width + b]);
        context.fillRect(x - 1, y - 1, 2, 2);
      }
      context.globalAlpha = 1;
    }
    this.curves.forEach(({ x, y, colour }, c) => {
      const frame = Math.min(this.frames[c] ?? x.length - 1, x.length - 1);
      context.fillStyle = colour;
      context.beginPath();
      context.arc(...at(x[frame], y[frame]), 4, 0, 2 * Math.PI);
      context.fill();
    });
  }
}

/** The last of the times that is not after t. */
export function frameAt(times: Float64Array, t: number): number {
  let [low, high] = [0, times.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (times[middle] <= t + 1e-12) low = middle;
    else high = middle - 1;
  }
  return low;
}
