/** Bodies, trails and forces in space, on a plain canvas: faces from back to front, each in one tone. */

import { filled, trace } from "./dom";
import { mesh, placed, reach, type Point } from "./shapes";
import type { Members, Parts, Run } from "./types";

export interface Drawn {
  run: Run;
  colour: string;
  frame: number;
}

interface Face {
  points: [number, number][];
  depth: number;
  fill: string;
  stroke: string;
  closed: boolean;
  width: number;
}

function toned(colour: string, light: number, opacity: number): string {
  const parts = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
  const mixed = parts.map((x) => Math.round(light < 1 ? x * light : 255 - (255 - x) * (2 - light)));
  return `rgba(${mixed.join(",")},${opacity})`;
}

export class Space {
  azimuth: number;
  elevation: number;
  zoom = 1;
  private centre: Point = [0, 0, 0];
  private extent = 1;
  private size = 0; // of the bodies
  private force = 0; // the largest, for the length of arrows
  private readonly width: number; // numbers of a row

  constructor(
    readonly canvas: HTMLCanvasElement,
    readonly parts: Parts,
    private readonly changed: () => void,
  ) {
    this.azimuth = parts.camera.azimuth;
    this.elevation = parts.camera.elevation;
    this.width = 10 * parts.bodies.length + 3 * parts.marks.length + 6 * parts.arrows.length;
    this.listen();
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (e) => canvas.setPointerCapture(e.pointerId));
    canvas.addEventListener("pointermove", (e) => {
      if (!canvas.hasPointerCapture(e.pointerId)) return;
      this.turn(-0.5 * e.movementX, 0.5 * e.movementY);
    });
    canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      this.zoom *= Math.exp(-0.001 * e.deltaY);
      this.changed();
    }, { passive: false });
    canvas.addEventListener("keydown", (e) => {
      const by: Record<string, [number, number]> = {
        ArrowLeft: [-5, 0], ArrowRight: [5, 0], ArrowUp: [0, 5], ArrowDown: [0, -5],
      };
      if (by[e.key]) this.turn(...by[e.key]);
      else if (e.key === "+" || e.key === "-") this.zoom *= e.key === "+" ? 1.1 : 1 / 1.1;
      else return;
      e.preventDefault();
      e.stopPropagation();
      this.changed();
    });
  }

  private turn(azimuth: number, elevation: number): void {
    this.azimuth += azimuth;
    this.elevation = Math.max(-90, Math.min(90, this.elevation + elevation));
    this.changed();
  }

  private mark(run: Run, frame: number, k: number): Point {
    const at = frame * this.width + 10 * this.parts.bodies.length + 3 * k;
    return [run.looks[at], run.looks[at + 1], run.looks[at + 2]];
  }

  private sizes(run: Run, frame: number, k: number): number[] {
    const at = frame * this.width + 7 * this.parts.bodies.length + 3 * k;
    return Array.from(run.looks.subarray(at, at + 3));
  }

  /** Look at all places of these runs. */
  fit(runs: Run[]): void {
    const [low, high]: [Point, Point] = [[Infinity, Infinity, Infinity], [-Infinity, -Infinity, -Infinity]];
    const { bodies, marks, arrows } = this.parts;
    this.size = this.force = 0;
    const see = (p: ArrayLike<number>, at: number, by: number): void => {
      for (let i = 0; i < 3; i++)
        if (Number.isFinite(p[at + i])) {
          low[i] = Math.min(low[i], p[at + i] - by);
          high[i] = Math.max(high[i], p[at + i] + by);
        }
    };
    for (const run of runs) {
      const count = run.looks.length / this.width;
      const reaches = bodies.map((body, k) => reach(body, this.sizes(run, 0, k)));
      const solid = bodies.map((body, k) => (body.kind === "floor" || reaches[k] > 1e3 ? -1 : k)).filter((k) => k >= 0);
      for (let f = 0; f < count; f++) {
        const at = f * this.width;
        for (const k of solid) see(run.looks, at + 7 * k, reaches[k]);
        for (let k = 0; k < marks.length; k++) see(run.looks, at + 10 * bodies.length + 3 * k, 0);
        for (let k = 0; k < arrows.length; k++) {
          const a = at + 10 * bodies.length + 3 * marks.length + 6 * k;
          this.force = Math.max(this.force, Math.hypot(run.looks[a + 3], run.looks[a + 4], run.looks[a + 5]));
        }
      }
      this.size = Math.max(this.size, ...solid.map((k) => reaches[k]));
    }
    this.centre = low.map((x, i) => (Number.isFinite(x) ? (x + high[i]) / 2 : 0)) as Point;
    this.extent = Math.max(1e-9, ...low.map((x, i) => high[i] - x).filter(Number.isFinite)) || 1;
  }

  private follows(): boolean {
    return this.parts.camera.follow && this.size > 0 && this.extent > 12 * this.size;
  }

  draw(drawn: Drawn[], ink: string, ground: string, cloud: { members: Members; colour: string; frame: number } | null = null): void {
    const [w, h] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const context = filled(this.canvas, w, h, ground);
    if (!context || !drawn.length) return;
    let centre = this.centre;
    let extent = this.extent;
    if (this.follows()) {
      const { run, frame } = drawn[0];
      const k = this.parts.bodies.findIndex((body) => body.kind !== "floor");
      const at = frame * this.width + 7 * Math.max(k, 0);
      centre = [run.looks[at], run.looks[at + 1], run.looks[at + 2]];
      extent = 8 * this.size;
    }
    const scale = (0.8 * this.zoom * Math.min(w, h)) / extent;
    const [a, e] = [(this.azimuth * Math.PI) / 180, (this.elevation * Math.PI) / 180];
    const right = [-Math.sin(a), Math.cos(a), 0];
    const toward = [Math.cos(e) * Math.cos(a), Math.cos(e) * Math.sin(a), Math.sin(e)];
    const up = [-Math.sin(e) * Math.cos(a), -Math.sin(e) * Math.sin(a), Math.cos(e)];
    const along = (p: Point, d: number[]): number =>
      (p[0] - centre[0]) * d[0] + (p[1] - centre[1]) * d[1] + (p[2] - centre[2]) * d[2];
    const seen = (p: Point): [number, number] => [w / 2 + scale * along(p, right), h / 2 - scale * along(p, up)];
    const depth = (p: Point): number => along(p, toward);

    this.floor(context, seen, centre, extent, ink);
    if (cloud) this.cloud(context, seen, cloud.members, cloud.frame, cloud.colour);
    for (const { run, colour, frame } of drawn) this.trails(context, seen, run, frame, colour);
    const faces = drawn.flatMap((x, k) => this.faces(x, k > 0, seen, depth, toward));
    faces.sort((x, y) => x.depth - y.depth);
    for (const face of faces) {
      context.beginPath();
      face.points.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.lineWidth = face.width;
      context.strokeStyle = face.stroke;
      if (face.closed) {
        context.closePath();
        context.fillStyle = face.fill;
        context.fill();
      }
      context.stroke();
    }
    for (const { run, colour, frame } of drawn) this.marks(context, seen, run, frame, colour, extent);
    this.axes(context, right, up, w, h, ink);
  }

  private floor(context: CanvasRenderingContext2D, seen: (p: Point) => [number, number], centre: Point, extent: number, ink: string): void {
    if (!this.parts.bodies.some((body) => body.kind === "floor")) return;
    const step = 10 ** Math.floor(Math.log10(extent / 2));
    const [x0, y0] = [Math.round(centre[0] / step), Math.round(centre[1] / step)];
    const n = Math.min(40, Math.ceil(extent / step));
    context.strokeStyle = ink;
    context.globalAlpha = 0.12;
    context.lineWidth = 1;
    context.beginPath();
    for (let k = -n; k <= n; k++) {
      const ends: [Point, Point][] = [
        [[(x0 + k) * step, (y0 - n) * step, 0], [(x0 + k) * step, (y0 + n) * step, 0]],
        [[(x0 - n) * step, (y0 + k) * step, 0], [(x0 + n) * step, (y0 + k) * step, 0]],
      ];
      for (const [from, to] of ends) {
        context.moveTo(...seen(from));
        context.lineTo(...seen(to));
      }
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  /** Where the members of a cloud are. */
  private cloud(context: CanvasRenderingContext2D, seen: (p: Point) => [number, number], members: Members, frame: number, colour: string): void {
    context.fillStyle = colour;
    context.globalAlpha = 0.55;
    for (let k = 3 * frame * members.count; k < 3 * (frame + 1) * members.count; k += 3) {
      const [x, y] = seen([members.points[k], members.points[k + 1], members.points[k + 2]]);
      context.fillRect(x - 1, y - 1, 2, 2);
    }
    context.globalAlpha = 1;
  }

  private trails(context: CanvasRenderingContext2D, seen: (p: Point) => [number, number], run: Run, frame: number, colour: string): void {
    this.parts.marks.forEach((mark, k) => {
      if (!mark.trail) return;
      context.strokeStyle = colour;
      context.lineWidth = 1.5;
      const path = (from: number, to: number, alpha: number): void => {
        context.globalAlpha = alpha;
        context.beginPath();
        trace(context, to - from + 1, (f) => seen(this.mark(run, from + f, k)));
        context.stroke();
      };
      path(frame, run.looks.length / this.width - 1, 0.25); // what is to come
      path(0, frame, 1);
    });
  }

  /** The first method's bodies as they are; those of the others as shadows in their colour. */
  private faces(drawn: Drawn, shadow: boolean, seen: (p: Point) => [number, number], depth: (p: Point) => number, toward: number[]): Face[] {
    const { run, frame } = drawn;
    const found: Face[] = [];
    this.parts.bodies.forEach((body, k) => {
      const colour = shadow ? drawn.colour : body.colour;
      const opacity = shadow ? 0.2 * body.opacity : body.opacity;
      const shape = mesh(body, this.sizes(run, frame, k));
      const at = frame * this.width + 7 * k;
      for (const { points, light } of shape.faces) {
        const places = points.map((p) => placed(run.looks, at, p));
        const [p, q, r] = [places[0], places[1], places[places.length - 1]];
        const [u, v] = [[q[0] - p[0], q[1] - p[1], q[2] - p[2]], [r[0] - p[0], r[1] - p[1], r[2] - p[2]]];
        const normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
        const size = Math.hypot(...normal) || 1;
        const facing = Math.abs(normal[0] * toward[0] + normal[1] * toward[1] + normal[2] * toward[2]) / size;
        const tone = 0.55 + 0.45 * facing + (light && body.pattern === "sectors" ? 0.55 : 0);
        const fill = toned(colour, tone, opacity);
        const mean = places.reduce((sum, x) => sum + depth(x), 0) / places.length;
        found.push({ points: places.map(seen), depth: mean, fill, stroke: shadow ? "transparent" : fill, closed: true, width: 0.5 });
      }
      for (const line of shape.lines) {
        const places = line.map((p) => placed(run.looks, at, p));
        const mean = places.reduce((sum, x) => sum + depth(x), 0) / places.length;
        found.push({ points: places.map(seen), depth: mean, fill: "", stroke: toned(colour, 0.9, opacity), closed: false, width: 1.5 });
      }
    });
    return found;
  }

  private marks(context: CanvasRenderingContext2D, seen: (p: Point) => [number, number], run: Run, frame: number, colour: string, extent: number): void {
    context.fillStyle = colour;
    this.parts.marks.forEach((_, k) => {
      context.beginPath();
      context.arc(...seen(this.mark(run, frame, k)), 4, 0, 2 * Math.PI);
      context.fill();
    });
    const begin = frame * this.width + 10 * this.parts.bodies.length + 3 * this.parts.marks.length;
    const unit = this.force ? (0.3 * extent) / this.force : 0;
    this.parts.arrows.forEach((arrow, k) => {
      const [x, y, z, fx, fy, fz] = run.looks.subarray(begin + 6 * k, begin + 6 * k + 6);
      const [from, to] = [seen([x, y, z]), seen([x + unit * fx, y + unit * fy, z + unit * fz])];
      const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
      if (length < 1) return;
      const [dx, dy] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
      context.strokeStyle = arrow.colour;
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...to);
      context.moveTo(to[0] - 7 * dx - 4 * dy, to[1] - 7 * dy + 4 * dx);
      context.lineTo(...to);
      context.lineTo(to[0] - 7 * dx + 4 * dy, to[1] - 7 * dy - 4 * dx);
      context.stroke();
    });
  }

  private axes(context: CanvasRenderingContext2D, right: number[], up: number[], w: number, h: number, ink: string): void {
    const names = this.parts.axes.length ? this.parts.axes : ["x", "y", "z"];
    const [x, y] = [34, h - 30];
    context.font = "12px system-ui, sans-serif";
    context.lineWidth = 1;
    context.strokeStyle = context.fillStyle = ink;
    names.forEach((name, i) => {
      const [dx, dy] = [22 * right[i], -22 * up[i]];
      if (!name || Math.hypot(dx, dy) < 3) return;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x + dx, y + dy);
      context.stroke();
      context.fillText(name, Math.min(w - 20, x + 1.35 * dx - 3), y + 1.35 * dy + 4);
    });
  }
}
