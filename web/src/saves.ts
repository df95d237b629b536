/** Files that are saved from the page. */

import { button, download, el } from "./dom";
import { inks, type Shown } from "./plots";
import { toCsv } from "./share";
import type { Content } from "./types";

/** What there is to save. */
export interface Saved {
  content: Content;
  shown: () => Shown[];
  pictures: () => HTMLCanvasElement[];
  say: (text: string) => void;
}

export function buttons(saved: Saved): HTMLButtonElement[] {
  const name = saved.content.system.name.replace(/[^\w.-]+/g, "_");
  return [
    button("CSV", "save the rows as CSV", () => download(`${name}.csv`, new Blob([toCsv(saved.content, saved.shown())], { type: "text/csv" }))),
    button("PNG", "save a picture", () => picture(`${name}.png`, saved.pictures())),
  ];
}

/** All pictures one below the other. */
function picture(name: string, parts: HTMLCanvasElement[]): void {
  const made = el("canvas", { width: Math.max(...parts.map((x) => x.width)), height: parts.reduce((sum, x) => sum + x.height, 0) });
  const context = made.getContext("2d");
  if (!context) return;
  context.fillStyle = inks().ground;
  context.fillRect(0, 0, made.width, made.height);
  let at = 0;
  for (const part of parts) {
    context.drawImage(part, 0, at);
    at += part.height;
  }
  made.toBlob((blob) => blob && download(name, blob));
}
