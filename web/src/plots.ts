/** Curves over time by uPlot, and the phase portrait on a canvas. */

import uPlot from "uplot";
import { FLOOR, quantities, times, values } from "./quantities";
import type { Content, MethodData, Run } from "./types";
import { el, select } from "./dom";

export interface Shown {
  method: MethodData;
  run: Run;
  colour: string;
  dash: number[];
}

/** Ink and grid in the colours of the page. */
export function inks(): { ink: string; grid: string; ground: string } {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  return { ink: of("--ink"), grid: of("--grid"), ground: of("--panel") };
}

const briefly = (x: number): string => (x === 0 ? "0" : Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5 ? x.toExponential(0) : String(Number(x.toPrecision(6))));

/** Powers of ten, seven lines or fewer. */
function decades(_: uPlot, __: number, low: number, high: number): number[] {
  const [first, end] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  const by = Math.max(1, Math.ceil((end - first + 1) / 7));
  const found = [];
  for (let k = end; k >= first; k -= by) found.unshift(10 ** k);
  return found;
}

export class Panel {
  readonly element: HTMLElement;
  plot: uPlot | null = null;
  private readonly place = el("div", { className: "plot" });
  private readonly line = el("div", { className: "now", "aria-hidden": "true" });
  private shown: Shown[] = [];
  private drawn = ""; // what the plot is of; new numbers of the same go into it
  private most = 1;

  constructor(
    private readonly content: Content,
    public key: string,
    changed: () => void,
    private readonly goto: (t: number) => void,
  ) {
    const options = quantities(content).map((x): [string, string] => [x.key, x.label]);
    const choose = select("what is plotted", options, key, (value) => {
      this.key = value;
      this.draw(this.shown);
      changed();
    });
    this.element = el("section", { className: "panel" }, choose, this.place);
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.place);
  }

  private size(): { width: number; height: number } {
    return { width: Math.max(120, this.place.clientWidth), height: Math.max(120, this.place.clientHeight) };
  }

  draw(shown: Shown[]): void {
    this.shown = shown;
    const { ink, grid } = inks();
    const drawn = [this.key, ink, ...shown.map((x) => x.method.text)].join("\n");
    if (drawn !== this.drawn || !shown.length) {
      this.plot?.destroy();
      this.plot = null;
      this.drawn = drawn;
    }
    if (!shown.length) return;
    const quantity = quantities(this.content).find((x) => x.key === this.key);
    const errors = quantity?.errors ?? false;
    const tables = shown.map(({ method, run }): uPlot.AlignedData => {
      const found = values(this.content, method, run, this.key);
      const y = errors ? found.map((x) => Math.max(x, FLOOR)) : found;
      const t = times(method, run);
      return [t.subarray(0, y.length), Array.from(y, (x) => (Number.isFinite(x) ? x : null))];
    });
    const data = tables.length > 1 ? uPlot.join(tables) : tables[0];
    this.most = Math.max(...tables.map((x) => (x[1] as (number | null)[]).reduce<number>((most, y) => Math.max(most, y ?? 0), 0)));
    if (this.plot) return this.plot.setData(data);
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "11px system-ui, sans-serif" };
    this.plot = new uPlot(
      {
        ...this.size(),
        legend: { show: false },
        cursor: { points: { size: 5 }, drag: { x: true, y: false } },
        scales: { x: { time: false }, y: errors ? { distr: 3, range: () => [FLOOR / 2, Math.max(1e-12, 3 * this.most)] } : {} },
        axes: [
          { ...axis, size: 30 },
          { ...axis, size: 62, ...(errors ? { splits: decades, filter: (_, splits: number[]) => splits } : {}), values: (_, splits) => splits.map((x) => (x === null ? "" : briefly(x))) },
        ],
        series: [{}, ...shown.map(({ method, colour, dash }) => ({ label: method.name, stroke: colour, width: 1.6, dash, spanGaps: true, points: { show: false } }))],
      },
      data,
      this.place,
    );
    this.plot.over.append(this.line);
    this.plot.over.addEventListener("click", () => {
      const { left } = this.plot?.cursor ?? {};
      if (this.plot && left !== undefined && left >= 0) this.goto(this.plot.posToVal(left, "x"));
    });
  }

  now(t: number): void {
    if (!this.plot) return;
    const x = this.plot.valToPos(t, "x");
    this.line.style.transform = `translateX(${x}px)`;
    this.line.hidden = !(x >= 0 && x <= this.plot.over.clientWidth);
  }
}

/** One coordinate against another. */
export class Portrait {
  readonly element: HTMLElement;
  readonly canvas = el("canvas", { className: "portrait", role: "img", "aria-label": "phase portrait" });
  private curves: { x: Float64Array; y: Float64Array; colour: string; dash: number[] }[] = [];
  private box: [number, number, number, number] = [0, 1, 0, 1];
  private shown: Shown[] = [];

  constructor(
    private readonly content: Content,
    public keys: [string, string],
    changed: () => void,
  ) {
    const options = quantities(content).filter((x) => !x.errors).map((x): [string, string] => [x.key, x.label]);
    const chosen = (k: 0 | 1) => (value: string): void => {
      this.keys[k] = value;
      this.draw(this.shown);
      changed();
    };
    const across = select("across", options, keys[0], chosen(0));
    const upward = select("upward", options, keys[1], chosen(1));
    const head = el("div", { className: "pair" }, upward, el("span", {}, "against"), across);
    this.element = el("section", { className: "panel" }, head, el("div", { className: "plot" }, this.canvas));
    new ResizeObserver(() => this.now([])).observe(this.canvas);
  }

  draw(shown: Shown[]): void {
    this.shown = shown;
    this.curves = shown.map(({ method, run, colour, dash }) => ({
      x: values(this.content, method, run, this.keys[0]), y: values(this.content, method, run, this.keys[1]), colour, dash,
    }));
    const range = (name: "x" | "y"): [number, number] => {
      let [low, high] = [Infinity, -Infinity];
      for (const curve of this.curves) for (const x of curve[name]) if (Number.isFinite(x)) [low, high] = [Math.min(low, x), Math.max(high, x)];
      const gap = 0.05 * (high - low) || 0.5;
      return [low - gap, high + gap];
    };
    this.box = [...range("x"), ...range("y")];
    this.now([]);
  }

  private frames: number[] = [];

  now(frames: number[]): void {
    if (frames.length) this.frames = frames;
    const context = this.canvas.getContext("2d");
    const [w, h] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (!context || !w) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = w * ratio;
    this.canvas.height = h * ratio;
    context.scale(ratio, ratio);
    const { ink, grid, ground } = inks();
    context.fillStyle = ground;
    context.fillRect(0, 0, w, h);
    const [x0, x1, y0, y1] = this.box;
    const [left, top, right, bottom] = [52, 8, w - 10, h - 24];
    const at = (x: number, y: number): [number, number] => [left + ((x - x0) / (x1 - x0)) * (right - left), bottom - ((y - y0) / (y1 - y0)) * (bottom - top)];
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
    this.curves.forEach(({ x, y, colour, dash }, c) => {
      context.strokeStyle = context.fillStyle = colour;
      context.lineWidth = 1.4;
      context.setLineDash(dash);
      context.beginPath();
      for (let k = 0; k < x.length; k++) context.lineTo(...at(x[k], y[k]));
      context.stroke();
      context.setLineDash([]);
      const frame = Math.min(this.frames[c] ?? x.length - 1, x.length - 1);
      context.beginPath();
      context.arc(...at(x[frame], y[frame]), 4, 0, 2 * Math.PI);
      context.fill();
    });
  }
}
