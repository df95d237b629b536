/** Curves over time by uPlot. */

import uPlot from "uplot";
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

/** Ink and grid in the colours of the page. */
export function inks(): { ink: string; grid: string; ground: string } {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  return { ink: of("--ink"), grid: of("--grid"), ground: of("--panel") };
}

export const briefly = (x: number): string => (x === 0 ? "0" : Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5 ? x.toExponential(0) : String(Number(x.toPrecision(6))));

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
    const tables = shown.map(({ method, run, t }): uPlot.AlignedData => {
      const found = values(this.content, method, run, this.key);
      const y = errors ? found.map((x) => Math.max(x, FLOOR)) : found;
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
