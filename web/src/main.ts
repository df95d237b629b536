/** The page: what is chosen, what is asked of the worker, and what is shown of its answers. */

import { Controls, type Moved } from "./controls";
import { button, el, select, showText } from "./dom";
import type { Played } from "./film";
import { another, catalogue, Legend, references, refused } from "./legend";
import { Opening } from "./opening";
import { Panel, inks, type Shown } from "./plots";
import { frameAt, Portrait } from "./portrait";
import { answers, type Facts } from "./facts";
import { times } from "./quantities";
import { buttons } from "./saves";
import { fromLink, toLink, toPython, type View } from "./share";
import { Space } from "./space";
import type { Asked, Choice, Content, Crossings, Members, MethodData, Run, Start, Told } from "./types";

declare const WORKER: string;

class Page {
  private readonly choice: Choice;
  private readonly view: View;
  private readonly worker = new Worker(URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" })));
  private readonly panels: Panel[];
  private readonly portrait: Portrait;
  private readonly space: Space;
  private readonly controls: Controls;
  private readonly opening: Opening;
  private readonly canvas = el("canvas", { className: "space", tabIndex: 0, role: "img", "aria-label": "the motion in space; arrow keys turn it, plus and minus zoom" });
  private readonly status = el("p", { className: "status", role: "status" });
  private readonly clock = el("output", { className: "clock" });
  private readonly scrub = el("input", { type: "range", min: "0", max: "1", step: "any", "aria-label": "time" });
  private readonly play = button("▶", "play or pause (space)", () => this.toggle());
  private readonly legend: Legend;
  private readonly bar = el("progress", { max: 1, value: 0, hidden: true });
  private shown: Shown[] = [];
  private found: Crossings[] = [];
  private serial = 0; // of what was asked of the worker
  private cloud: { members: Members; colour: string } | null = null;
  private sought = { section: 0, cloud: 0 };
  private asked = 0;
  private begun = 0;
  private playing = false;
  private stamp = 0;
  private ready = false;
  private waiting: { moved: Moved; onto: boolean } | null = null;

  constructor(private readonly content: Content) {
    const { system } = content;
    const names = system.coordinates;
    const choice: Choice = {
      parameters: system.parameters.flatMap((x) => x.values), q: [...system.q], v: [...system.v],
      held: names.map(() => false), h: system.step_size, steps: system.steps, methods: content.methods.map((x) => x.text),
      curves: system.inputs.map(() => ({ on: false, between: "hold", points: [[0, 0]] })),
    };
    const second = system.constraints + system.holonomic ? "constraint" : `v:${names[0]}`;
    const third = system.integrals.length ? `integral:${system.integrals[0]}` : `q:${names[0]}`;
    const view: View = {
      panels: ["energy", second, third], portrait: [`q:${names[0]}`, names[1] ? `q:${names[1]}` : `v:${names[0]}`],
      section: { key: "", value: 0, way: 0 }, cloud: { members: 0, spread: 0.05 },
      t: 0, speed: 1, camera: [system.parts.camera.azimuth, system.parts.camera.elevation, 1],
    };
    [this.choice, this.view] = fromLink(location.hash.slice(1), content, choice, view);
    this.wanted = this.made = this.choice;
    this.opening = new Opening(this.choice, !location.hash);
    this.legend = new Legend(content, this.choice, () => this.change(null, false));
    this.controls = new Controls(content, this.choice, this.view.cloud, () => this.view.t, (moved, onto) => this.change(moved, onto), () => this.gather());
    this.controls.element.addEventListener("input", () => this.opening.over(), { capture: true });
    this.panels = this.view.panels.map((key, k) => new Panel(content, key, () => {
      this.view.panels[k] = this.panels[k].key;
      this.link();
      this.frame();
    }, (t) => this.goto(t)));
    this.portrait = new Portrait(content, this.view.portrait, this.view.section, () => this.link(), () => this.cut());
    this.space = new Space(this.canvas, system.parts, () => {
      this.view.camera = [this.space.azimuth, this.space.elevation, this.space.zoom];
      this.link();
      this.frame();
    });
    [this.space.azimuth, this.space.elevation, this.space.zoom] = this.view.camera;
    this.build();
    this.worker.onmessage = (event: MessageEvent<Told>) => this.hear(event.data);
    this.worker.onerror = (event) => this.say(`the worker failed: ${event.message}`);
    this.ask({ kind: "load", system, methods: content.methods, turn: content.turn });
    void this.others(content.served?.waiting ?? []);
    this.motion();
  }

  private build(): void {
    const { system, served } = this.content;
    const speed = select("speed", ["0.1", "0.25", "0.5", "1", "2", "5", "10", "50"].map((x) => [x, `${x} x`]), String(this.view.speed), (x) => {
      this.view.speed = Number(x);
      this.link();
    });
    this.scrub.addEventListener("input", () => this.goto(Number(this.scrub.value)));
    const time = el("div", { className: "time" }, this.play, this.scrub, this.clock, speed);
    const actions = el("div", { className: "actions" },
      button("Link", "copy a link that holds the whole state", () => {
        this.linkNow();
        showText("A link that holds the whole state", location.href);
      }),
      button("Python", "copy as Python", () => showText("The same runs in Python", toPython(this.content, this.choice))),
      ...buttons({
        content: this.content, choice: () => this.made, shown: () => this.shown,
        played: () => this.played(), after: () => this.goto(this.end()),
        pictures: () => [this.canvas, this.portrait.canvas, ...this.panels.flatMap((x) => (x.plot ? [x.plot.ctx.canvas] : []))],
      }),
      button("Reset", "back to the beginning", () => {
        history.replaceState(null, "", location.href.replace(/#.*/s, ""));
        location.reload();
      }));
    const head = el("header", {}, el("h1", {}, system.title || system.name), ...(served ? [catalogue(served.catalogue, (text) => this.say(text))] : []), actions);
    const side = el("aside", {}, el("h2", {}, "Methods"), this.legend.element, ...(served ? [another(served.methods, (name) => void this.fetched(name))] : []), ...refused(this.content), this.controls.element, ...references(this.content));
    const stage = el("section", { className: "panel stage" }, this.canvas, time);
    const main = el("main", {}, stage, this.portrait.element, ...this.panels.map((x) => x.element));
    const foot = el("footer", {}, this.status, this.bar, el("p", {}, `noslip ${this.content.version}`));
    document.body.append(head, el("div", { className: "columns" }, side, main), foot);
    this.legend.show();
    document.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    window.addEventListener("resize", () => this.frame());
    window.addEventListener("hashchange", () => location.reload()); // another link in the same tab
    new ResizeObserver(() => this.frame()).observe(this.canvas);
  }

  /** Methods that were still to be compiled when the page came. */
  private async others(names: string[]): Promise<void> {
    const wanted = this.content.served && new URLSearchParams(location.hash.slice(1)).get("m")?.split(";");
    const known = (): string[] => this.content.methods.map((x) => x.text);
    const all = [...new Set([...names, ...(wanted ?? [])])].filter((name) => !known().includes(name));
    for (const name of all) await this.fetched(name, !wanted || wanted.includes(name));
    const chosen = known().filter((name) => wanted?.includes(name));
    if (chosen.length && chosen.length < this.choice.methods.length) {
      this.choice.methods = chosen;
      this.legend.show();
      this.change(null, false);
    }
  }

  private async fetched(name: string, run = true): Promise<void> {
    this.say(`compiling ${name} ...`);
    const query = new URLSearchParams({ system: this.content.system.name, method: name });
    const answer = await fetch(`method?${query}`);
    if (!answer.ok) {
      const reason = el("p", { className: "hint" }, await answer.text());
      this.legend.element.after(reason);
      return this.say("");
    }
    const method = (await answer.json()) as MethodData;
    if (!this.content.methods.some((x) => x.text === method.text)) {
      this.content.methods.push(method);
      this.ask({ kind: "add", method });
    }
    if (run && !this.choice.methods.includes(method.text)) this.choice.methods.push(method.text);
    this.legend.show();
    if (run) this.change(null, false);
    else this.say("");
  }

  private ask(message: Asked): void {
    this.worker.postMessage(message);
  }

  private say(text: string): void {
    this.status.textContent = text;
  }

  /** Something was chosen: put the state on the constraints where it may have left them, and run. */
  private change(moved: Moved, onto: boolean): void {
    if (!this.ready) {
      this.waiting = { moved, onto };
      return;
    }
    this.asked = this.serial += 1;
    this.begun = performance.now();
    this.moved = moved;
    const held = onto ? this.choice.held.map((x, k) => x || k === moved) : null;
    this.ask({ kind: "run", id: this.asked, choice: this.choice, held });
    if (!onto) this.runs();
  }

  private moved: Moved = null;

  /** The choice is complete, and runs. */
  private runs(): void {
    this.wanted = structuredClone(this.choice);
    this.link();
  }

  private hear(told: Told): void {
    if (told.kind === "error") return this.say(told.text);
    if (told.kind === "ready") {
      this.ready = true;
      const { moved, onto } = this.waiting ?? { moved: null, onto: false };
      this.waiting = null;
      return this.change(moved, onto);
    }
    if (told.kind === "section") return told.id === this.sought.section ? this.crossed(told.found) : undefined;
    if (told.kind === "cloud") return told.id === this.sought.cloud ? this.gathered(told.members) : undefined;
    if (told.id !== this.asked && !Object.values(this.sought).includes(told.id)) return;
    if (told.kind === "progress") {
      this.bar.hidden = false;
      this.bar.value = told.part;
    } else if (told.kind === "start") this.started(told.start);
    else this.arrived(told.runs);
  }

  private started(start: Start | null): void {
    if (!start || start.relaxed) this.hint = "the constraint does not let these speeds stay; all of them moved";
    if (!start) return this.say("no admissible velocity was found here");
    this.choice.q = start.q;
    this.choice.v = start.v;
    this.controls.showState(start.relaxed ? null : this.moved);
    this.runs();
  }

  private hint = "";

  private come: Run[] | null = null;
  private drawn = false; // since the last frame

  /** Drawn at once, so that the next frame shows it; of what comes before that frame only the newest is drawn, in it. */
  private arrived(runs: Run[]): void {
    if (this.drawn) this.come = runs;
    if (this.drawn) return;
    this.drawn = true;
    requestAnimationFrame(() => {
      const latest = this.come;
      [this.come, this.drawn] = [null, false];
      if (latest) this.arrived(latest);
    });
    this.finished(runs);
  }

  private wanted: Choice; // what was asked for last
  private made: Choice; // what is shown

  private finished(runs: Run[]): void {
    const again = this.opening.again(runs);
    if (again !== null) {
      this.hint = again;
      this.controls.show();
      return this.change(null, false);
    }
    this.made = this.wanted;
    this.bar.hidden = true;
    this.cloud = null;
    this.shown = runs.flatMap((run) => {
      const method = this.content.methods.find((x) => x.text === run.method);
      return method ? [{ method, run, t: times(method, run), ...this.legend.look(run.method) }] : [];
    });
    this.space.fit(runs);
    const end = this.end();
    this.scrub.max = String(end);
    this.view.t = Math.min(this.view.t, end);
    this.draw();
    const took = performance.now() - this.begun;
    this.legend.note(runs);
    const form = runs[0]?.form === "relaxed" ? "with relaxed SIMD" : "without relaxed SIMD";
    this.say(`${this.choice.steps} steps, ${took.toFixed(0)} ms to the plots, ${form}. ${this.hint}`);
    this.hint = "";
    document.body.dataset.done = String(this.asked);
    if (this.view.section.key) this.cut();
    if (this.view.cloud.members) this.gather();
  }

  /** Look for the states in which the runs meet the section. */
  private cut(): void {
    this.link();
    if (!this.view.section.key) return this.portrait.crossed([]);
    this.sought.section = this.serial += 1;
    this.ask({ kind: "section", id: this.serial, choice: this.choice, section: this.view.section });
  }

  private crossed(found: Crossings[]): void {
    this.bar.hidden = true;
    this.portrait.crossed(found);
    this.found = found;
    document.body.dataset.crossed = String(this.sought.section);
  }

  /** Run the members of the cloud. */
  private gather(): void {
    this.link();
    this.sought.cloud = this.serial += 1;
    this.cloud = null;
    if (this.view.cloud.members) return this.ask({ kind: "cloud", id: this.serial, choice: this.choice, cloud: this.view.cloud });
    this.portrait.scatter();
    this.frame();
  }

  private gathered(members: Members): void {
    this.bar.hidden = true;
    this.cloud = { members, colour: this.legend.look(members.method).colour };
    this.portrait.gathered(members, this.cloud.colour);
    if (members.failed) this.say(`${members.failed} of ${members.count} members could not be solved to the end`);
    this.frame();
    document.body.dataset.gathered = String(this.sought.cloud);
  }

  private end(): number {
    return Math.max(0, ...this.shown.map((x) => x.t.at(-1) as number));
  }

  private draw(): void {
    for (const panel of this.panels) panel.draw(this.shown);
    this.portrait.draw(this.shown);
    this.frame();
  }

  /** The state at the time that is shown. */
  private frame(): void {
    const { t } = this.view;
    const frames = this.shown.map((x) => frameAt(x.t, t));
    const cloud = this.cloud && { ...this.cloud, frame: frameAt(this.cloud.members.times, t) };
    const { ink, ground } = inks();
    this.space.draw(this.shown.map(({ run, colour }, k) => ({ run, colour, frame: frames[k] })), ink, ground, cloud);
    this.portrait.now(frames, t);
    for (const panel of this.panels) panel.now(t);
    this.scrub.value = String(t);
    this.clock.textContent = `t = ${t.toFixed(2)}`;
  }

  private goto(t: number): void {
    this.view.t = Math.max(0, Math.min(t, this.end()));
    this.link();
    this.frame();
  }

  private played(): Played {
    if (this.playing) this.toggle();
    const show = (part: number): HTMLCanvasElement => {
      this.view.t = part * this.end();
      this.frame();
      return this.canvas;
    };
    return { seconds: this.end() / this.view.speed, show };
  }

  private toggle(): void {
    this.playing = !this.playing;
    if (this.playing && this.view.t >= this.end()) this.view.t = 0;
    this.play.textContent = this.playing ? "❚❚" : "▶";
    this.stamp = 0;
    if (this.playing) requestAnimationFrame((now) => this.tick(now));
    else this.link();
  }

  private tick(now: number): void {
    if (!this.playing) return;
    if (this.stamp) this.view.t += (this.view.speed * Math.min(now - this.stamp, 100)) / 1000;
    this.stamp = now;
    if (this.view.t >= this.end() && this.end() > 0) {
      this.view.t = this.end();
      this.toggle();
    }
    this.frame();
    if (this.playing) requestAnimationFrame((next) => this.tick(next));
  }

  /** Starts by itself, unless the reader wants less motion or came by a link. */
  private motion(): void {
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches && !location.hash) this.toggle();
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (target.closest("input, select, textarea, button, dialog, summary") || event.ctrlKey || event.metaKey) return;
    const step = this.end() / 100;
    if (event.key === " ") this.toggle();
    else if (event.key === "ArrowRight") this.goto(this.view.t + step);
    else if (event.key === "ArrowLeft") this.goto(this.view.t - step);
    else if (event.key === "Home") this.goto(0);
    else if (event.key === "End") this.goto(this.end());
    else return;
    event.preventDefault();
  }

  private timer = 0;

  private link(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.linkNow(), 150);
  }

  private linkNow(): void {
    history.replaceState(null, "", `#${toLink(this.choice, this.view)}`);
  }

  /** For the console. */
  facts(): Facts {
    return { content: this.content, choice: this.choice, shown: this.shown, found: this.found, members: this.cloud?.members ?? null };
  }
}

const text = document.getElementById("content")?.textContent ?? "{}";
const page = new Page(JSON.parse(text) as Content);
Object.assign(window, { noslip: answers(() => page.facts()) });
