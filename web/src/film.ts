/** The motion as a film: an animated GIF made here, or what the browser records. */

import { button, download, el, openDialog } from "./dom";
import { Gif } from "./gif";

const WIDEST = 480; // pixels
const LONGEST = 10; // seconds; longer runs are shown faster
const RECORDED = ["video/mp4", "video/webm;codecs=vp9", "video/webm"];

/** The motion: how long it plays in seconds, and its picture at a part of that, from 0 to 1. */
export interface Played {
  seconds: number;
  show: (part: number) => HTMLCanvasElement;
}

const wait = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** A canvas of the film's size, and what draws a part of the motion on it. */
function screen(played: Played): { canvas: HTMLCanvasElement; context: CanvasRenderingContext2D; draw: (part: number) => void } {
  const first = played.show(0);
  const scale = Math.min(1, WIDEST / first.width);
  const even = (x: number): number => 2 * Math.max(1, Math.round((x * scale) / 2)); // as videos want it
  const canvas = el("canvas", { width: even(first.width), height: even(first.height) });
  const context = canvas.getContext("2d", { willReadFrequently: true }) as CanvasRenderingContext2D;
  return { canvas, context, draw: (part) => context.drawImage(played.show(part), 0, 0, canvas.width, canvas.height) };
}

async function gif(played: Played, tell: (part: number) => void): Promise<Blob> {
  const seconds = Math.min(LONGEST, Math.max(0.5, played.seconds));
  const count = Math.max(2, Math.round(12.5 * seconds));
  const { canvas, context, draw } = screen(played);
  const made = new Gif(canvas.width, canvas.height, 8);
  for (let k = 0; k < count; k++) {
    draw(k / (count - 1));
    made.add(context.getImageData(0, 0, canvas.width, canvas.height).data);
    tell((0.5 * k) / count);
    await wait(0);
  }
  return made.file(async (part) => {
    tell(0.5 + 0.5 * part);
    await wait(0);
  });
}

async function recorded(played: Played, type: string, tell: (part: number) => void): Promise<Blob> {
  const seconds = Math.min(LONGEST, Math.max(0.5, played.seconds));
  const { canvas, draw } = screen(played);
  draw(0);
  const recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: type, videoBitsPerSecond: 4e6 });
  const parts: Blob[] = [];
  recorder.ondataavailable = (event) => parts.push(event.data);
  const ended = new Promise((done) => (recorder.onstop = done));
  recorder.start();
  const begun = performance.now();
  for (let part = 0; part < 1; ) {
    part = Math.min(1, (performance.now() - begun) / 1000 / seconds);
    draw(part);
    tell(part);
    await wait(15);
  }
  recorder.stop();
  await ended;
  return new Blob(parts, { type });
}

/** Asks for the kind, makes it and saves it. */
export function film(name: string, played: Played, after: () => void): void {
  const bar = el("progress", { max: 1, value: 0, "aria-label": "progress" });
  const type = typeof MediaRecorder === "undefined" ? undefined : RECORDED.find((x) => MediaRecorder.isTypeSupported(x));
  const make = (ending: string, made: (tell: (part: number) => void) => Promise<Blob>): HTMLButtonElement =>
    button(ending.toUpperCase(), `save as ${ending.toUpperCase()}`, () => {
      for (const x of dialog.querySelectorAll("button")) x.disabled = true;
      made((part) => (bar.value = part))
        .then((blob) => download(`${name}.${ending}`, blob), (error: unknown) => alert(`no film was made: ${String(error)}`))
        .finally(() => {
          dialog.close();
          after();
        });
    });
  const ending = type?.startsWith("video/mp4") ? "mp4" : "webm";
  const recording = type ? [make(ending, (tell) => recorded(played, type, tell))] : [];
  const hint = el("p", { className: "hint" }, `The motion as it plays, at most ${LONGEST} seconds.${type ? "" : " This browser records no video."}`);
  const dialog = openDialog("A film", hint, bar, make("gif", (tell) => gif(played, tell)), ...recording);
}
