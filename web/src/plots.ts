/** Curves over time by uPlot. */

import uPlot from "uplot";
import { curve, Line } from "./lines";
import { FLOOR, quantities, values } from "./quantities";
import type { Content, MethodData, Run } from "./types";
import { el, select } from "./dom";

export interface Shown {
  method: MethodData;
  run: Run;
  t: Float64Array; // of its rows
  colour: string;
  dash: number[];
}

type Inks = { ink: string; grid: string; ground: string };
let known: Inks | null = null;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (known = null)); // before others that listen draw

/** Ink and grid in the colours of the page. */
export function inks(): Inks {
  if (known) return known;
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  return (known = { ink: of("--ink"), grid: of("--grid"), ground: of("--panel") });
}

const WIDTH = 1.6; // of a curve

export const briefly = (x: number): string => (x === 0 ? "0" : Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5 ? x.toExponential(0) : String(Number(x.toPrecision(6))));

/** Powers of ten, seven lines or fewer. */
function decades(_: uPlot, __: number, low: number, high: number): number[] {
  const [first, end] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  const by = Math.max(1, Math.ceil((end - first + 1) / 7));
  const found = [];
  for (let k = end; k >= first; k -= by) found.unshift(10 ** k);
  return found;
}

/** Where numbers of a scale lie on a canvas. */
function pixels({ min, max }: uPlot.Scale, from: number, length: number, logarithmic: boolean): (x: number) => number {
  const of = logarithmic ? Math.log10 : (x: number): number => x;
  const [low, high] = [of(min as number), of(max as number)];
  const by = length / (high - low);
  return (x) => from + (of(x) - low) * by;
}

export class Panel {
  readonly element: HTMLElement;
  plot: uPlot | null = null;
  private readonly place = el("div", { className: "plot" });
  private readonly line = el("div", { className: "now", "aria-hidden": "true" });
  private shown: Shown[] = [];
  private drawn = ""; // what the plot is of; new numbers of the same go into it
  private most = 1;
  private readonly sizes: Set<string>; // keys that are shown on a logarithmic axis

  constructor(
    private readonly content: Content,
    public key: string,
    changed: () => void,
    private readonly goto: (t: number) => void,
  ) {
    const known = quantities(content);
    this.sizes = new Set(known.filter((x) => x.errors).map((x) => x.key));
    const options = known.map((x): [string, string] => [x.key, x.label]);
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
    const errors = this.errors();
    this.most = 0;
    const tables = shown.map(({ method, run, t }): uPlot.AlignedData => {
      const y = values(this.content, method, run, this.key);
      return [t.subarray(0, y.length), this.plotted(y, errors)];
    });
    const data = tables.length > 1 ? uPlot.join(tables) : tables[0];
    const { plot } = this;
    if (plot) return plot.batch(() => plot.setData(data)); // now, not behind this task
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
        series: [{}, ...shown.map(({ method, colour }) => ({ label: method.name, stroke: colour, paths: () => null, points: { show: false } }))],
        hooks: { drawSeries: [(plot, k) => this.curve(plot, k)] },
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

  private errors(): boolean {
    return this.sizes.has(this.key);
  }

  /** Numbers as uPlot takes them, without those that have no place. */
  private plotted(y: Float64Array, errors: boolean): Float64Array | (number | null)[] {
    let whole = true;
    for (let k = 0; k < y.length; k++) {
      if (errors) y[k] = Math.max(y[k], FLOOR);
      if (!Number.isFinite(y[k])) whole = false;
      else if (y[k] > this.most) this.most = y[k];
    }
    return whole ? y : Array.from(y, (x) => (Number.isFinite(x) ? x : null));
  }

  /** One of the curves, within what is seen and to the next points beside it. */
  private curve(plot: uPlot, series: number): void {
    const { ctx, bbox, scales } = plot;
    const { colour, dash } = this.shown[series - 1];
    const [t, y] = [plot.data[0], plot.data[series]];
    let [first, last] = plot.series[series].idxs as [number, number];
    do first -= 1;
    while (first > 0 && y[first] == null);
    do last += 1;
    while (last < y.length - 1 && y[last] == null);
    [first, last] = [Math.max(first, 0), Math.min(last, y.length - 1)];
    const width = WIDTH * uPlot.pxRatio;
    const across = pixels(scales.x, bbox.left, bbox.width, false);
    const upward = pixels(scales.y, bbox.top + bbox.height, -bbox.height, this.errors());
    ctx.save();
    ctx.beginPath();
    ctx.rect(Math.floor(bbox.left - width / 2), Math.floor(bbox.top - width / 2), Math.ceil(bbox.width + width), Math.ceil(bbox.height + width)); // of whole pixels, which costs nothing
    ctx.clip();
    ctx.translate((width % 2) / 2, (width % 2) / 2);
    [ctx.strokeStyle, ctx.lineWidth, ctx.lineJoin, ctx.lineCap] = [colour, width, "round", "butt"];
    curve(new Line(ctx, dash), last - first + 1, (k) => across(t[first + k]), (k) => upward(y[first + k] ?? NaN));
    ctx.restore();
  }

  now(t: number): void {
    if (!this.plot) return;
    const x = this.plot.valToPos(t, "x");
    this.line.style.transform = `translateX(${x}px)`;
    this.line.hidden = !(x >= 0 && x <= this.plot.bbox.width / uPlot.pxRatio);
  }
}
