/** Files that are saved from the page. */

import { button, download, el, openDialog } from "./dom";
import { film, type Played } from "./film";
import { toNetcdf } from "./netcdf";
import { inks, type Shown } from "./plots";
import { toCsv } from "./share";
import type { Choice, Content } from "./types";

/** What there is to save. */
export interface Saved {
  content: Content;
  choice: () => Choice; // of what is shown
  shown: () => Shown[];
  pictures: () => HTMLCanvasElement[];
  played: () => Played;
  after: () => void; // a film was made
}

export function buttons(saved: Saved): HTMLButtonElement[] {
  const name = saved.content.system.name.replace(/[^\w.-]+/g, "_");
  return [
    button("CSV", "save the rows as CSV", () => download(`${name}.csv`, new Blob([toCsv(saved.content, saved.shown())], { type: "text/csv" }))),
    button("NetCDF", "save runs as NetCDF", () => netcdf(name, saved)),
    button("PNG", "save a picture", () => picture(`${name}.png`, saved.pictures())),
    button("Film", "save the motion as GIF or video", () => film(name, saved.played(), saved.after)),
  ];
}

/** A file for each method, as `noslip.load` reads it. */
function netcdf(name: string, saved: Saved): void {
  const made = saved.shown().map(({ method, run }) => {
    const asked = button(method.name, `save the run of ${method.text}`, () => {
      const data = toNetcdf(saved.content, saved.choice(), method, run);
      download(`${name}_${method.name.replace(/[^\w.-]+/g, "_")}.nc`, new Blob([data], { type: "application/x-netcdf" }));
    });
    asked.disabled = run.failed > 0;
    return asked;
  });
  const failed = saved.shown().some((x) => x.run.failed) ? " A run that failed is no whole one, and not saved." : "";
  openDialog("NetCDF", el("p", { className: "hint" }, `noslip.load opens the file, and so do readers of classic NetCDF.${failed}`), ...made);
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
