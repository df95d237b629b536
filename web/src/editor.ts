/** An input: a slider for a constant, or a curve over time with points that are dragged or typed. */

import { from, read, written } from "./curves";
import { Dial, el, mark, select } from "./dom";
import { briefly, inks } from "./plots";
import type { Curve } from "./types";

const NEAR = 12; // pixels

export class CurveEditor {
  readonly element: HTMLElement;
  private readonly dial: Dial;
  private readonly box: HTMLInputElement;
  private readonly canvas = el("canvas", { className: "curve", role: "img" });
  private readonly text: HTMLInputElement;
  private readonly more: HTMLElement;
  private held = -1; // the point that is dragged
  private reach = 1; // the largest value that is drawn

  constructor(
    name: string,
    private readonly curve: Curve,
    private readonly constant: { get: () => number; set: (x: number) => void },
    private readonly end: () => number,
    now: () => number,
    private readonly changed: () => void,
  ) {
    this.box = el("input", { type: "checkbox", checked: curve.on, title: "a curve over time", "aria-label": `${name} as a curve` });
    this.box.addEventListener("change", () => {
      curve.on = this.box.checked;
      if (curve.on && curve.points.length === 1) curve.points = [[0, this.constant.get()]];
      this.moved();
    });
    this.dial = new Dial(name, constant.get(), [-2, 2], (x) => {
      if (curve.on) curve.points = from(curve.points, Number(now().toPrecision(6)), x);
      else constant.set(x);
      this.moved();
    }, [this.box]);
    const between = select(`${name} between its points`, [["hold", "held between points"], ["linear", "straight between points"]], curve.between, (x) => {
      curve.between = x as Curve["between"];
      this.moved();
    });
    this.text = el("input", { type: "text", className: "exact", spellcheck: false, "aria-label": `points of ${name}, time:value` });
    this.text.addEventListener("change", () => {
      const points = read(this.text.value);
      mark(this.text, points !== null);
      if (!points) return;
      curve.points = points;
      this.moved();
    });
    this.canvas.setAttribute("aria-label", `${name} over time; its points are in the field below`);
    const hint = el("p", { className: "hint" }, "Click for a point, drag it, click it twice to remove it. The slider sets the value from the time that is shown on, also while it plays.");
    this.more = el("div", {}, this.canvas, this.text, between, hint);
    this.element = el("div", {}, this.dial.element, this.more);
    this.listen();
    this.show();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  private moved(): void {
    this.show();
    this.changed();
  }

  show(): void {
    const { points, on } = this.curve;
    this.box.checked = on;
    this.more.hidden = !on;
    if (document.activeElement !== this.dial.slider) this.dial.show(on ? (points.at(-1) as [number, number])[1] : this.constant.get());
    this.text.value = written(points);
    mark(this.text, true);
    if (this.held < 0) this.reach = Math.max(1, 1.25 * Math.max(...points.map((x) => Math.abs(x[1]))));
    this.draw();
  }

  private at([t, y]: [number, number]): [number, number] {
    const [w, h] = [this.canvas.clientWidth, this.canvas.clientHeight];
    return [6 + (t / this.end()) * (w - 12), h / 2 - (y / this.reach) * (h / 2 - 6)];
  }

  private under(event: MouseEvent): [number, number] {
    const [w, h] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const t = ((event.offsetX - 6) / (w - 12)) * this.end();
    const y = ((h / 2 - event.offsetY) / (h / 2 - 6)) * this.reach;
    return [Math.max(0, Number(t.toPrecision(4))), Number(Math.max(-this.reach, Math.min(this.reach, y)).toPrecision(3))];
  }

  private nearest(event: MouseEvent): number {
    const away = this.curve.points.map((point) => {
      const [x, y] = this.at(point);
      return Math.hypot(x - event.offsetX, y - event.offsetY);
    });
    const least = Math.min(...away);
    return least <= NEAR ? away.indexOf(least) : -1;
  }

  private listen(): void {
    const { canvas, curve } = this;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.held = this.nearest(event);
      if (this.held >= 0) return;
      const [t, y] = this.under(event);
      curve.points = [...curve.points.filter((x) => x[0] !== t), [t, y] as [number, number]].sort((a, b) => a[0] - b[0]);
      this.held = curve.points.findIndex((x) => x[0] === t);
      this.moved();
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.held < 0 || !canvas.hasPointerCapture(event.pointerId)) return;
      const [t, y] = this.under(event);
      const [before, after] = [curve.points[this.held - 1]?.[0] ?? 0, curve.points[this.held + 1]?.[0] ?? Infinity];
      const free = this.held > 0 && t > before && t < after;
      curve.points[this.held] = [free ? t : curve.points[this.held][0], y];
      this.moved();
    });
    const release = (): void => {
      this.held = -1;
      this.show();
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("dblclick", (event) => {
      const k = this.nearest(event);
      if (k <= 0) return;
      curve.points = curve.points.filter((_, j) => j !== k);
      this.moved();
    });
  }

  private draw(): void {
    const context = this.canvas.getContext("2d");
    const [w, h] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (!context || !w) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = w * ratio;
    this.canvas.height = h * ratio;
    context.scale(ratio, ratio);
    const { ink, grid } = inks();
    context.strokeStyle = grid;
    context.strokeRect(0.5, 0.5, w - 1, h - 1);
    context.beginPath();
    context.moveTo(0, h / 2);
    context.lineTo(w, h / 2);
    context.stroke();
    context.fillStyle = context.strokeStyle = ink;
    context.font = "10px system-ui, sans-serif";
    context.fillText(briefly(this.reach), 3, 11);
    context.textAlign = "right";
    context.fillText(`t = ${briefly(this.end())}`, w - 3, h - 4);
    context.textAlign = "left";
    const { points, between } = this.curve;
    context.beginPath();
    points.forEach((point, k) => {
      const [x, y] = this.at(point);
      if (k && between === "hold") context.lineTo(x, this.at(points[k - 1])[1]);
      context.lineTo(x, y);
    });
    context.lineTo(w, this.at(points[points.length - 1])[1]);
    context.lineWidth = 1.5;
    context.stroke();
    for (const point of points) {
      context.beginPath();
      context.arc(...this.at(point), 4, 0, 2 * Math.PI);
      context.fill();
    }
  }
}
