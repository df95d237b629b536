// Bundles the page into ../src/noslip/web/built; `node build.mjs FOLDER` writes elsewhere.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const folder = process.argv[2] ?? new URL("../src/noslip/web/built", import.meta.url).pathname;
const here = (path) => new URL(path, import.meta.url).pathname;
mkdirSync(folder, { recursive: true });
const common = { bundle: true, minify: true, write: false, target: "es2022", charset: "utf8", legalComments: "none" };
const text = (result) => result.outputFiles[0].text;

const worker = text(await build({ ...common, entryPoints: [here("src/worker.ts")], format: "iife" }));
const define = { WORKER: JSON.stringify(worker) };
const page = text(await build({ ...common, entryPoints: [here("src/main.ts")], format: "iife", define }));
const css = text(await build({ ...common, entryPoints: [here("src/page.css")] }));
const licence = readFileSync(here("node_modules/uplot/LICENSE"), "utf8").trim();
const notice = `/*! This page contains uPlot, github.com/leeoniya/uPlot.\n${licence}\n*/\n`;
const safe = (code) => code.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
writeFileSync(`${folder}/page.js`, notice + safe(page));
writeFileSync(`${folder}/page.css`, notice + css);

// what it was made from, so that a test without node sees whether it is up to date
const sources = ["build.mjs", "package-lock.json", ...readdirSync(here("src")).sort().map((name) => `src/${name}`)];
const digest = createHash("sha256");
for (const name of sources) digest.update(`${name}\n`).update(readFileSync(here(name)));
writeFileSync(`${folder}/sources.sha256`, `${digest.digest("hex")}\n`);
