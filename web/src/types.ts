/** What `noslip.web.content` writes into a page. Slots are counted in 8 bytes. */

export interface ModuleData {
  relaxed: string; // gzip in base64; with relaxed SIMD, and without
  plain: string;
  free: number; // the first address that nothing uses
}

export type Place = [slot: number, size: number];

export interface RowPlaces {
  t: Place;
  q: Place;
  turns: Place;
  v: Place;
  multipliers: Place;
  energy: Place;
  energy_scale: Place;
  constraint: Place;
  holonomic: Place;
  integrals: Record<string, number>;
  iterations: number;
}

export interface MethodData {
  text: string; // as `integrators.parse` reads it
  name: string;
  order: number;
  preserves: string[];
  works: [text: string, url: string][];
  module: ModuleData;
  slots: { fixed: number; initial: number; carry: number; row: number };
  row: RowPlaces;
  carry: { step: number; status: number };
}

export interface Body {
  name: string;
  kind: string;
  sizes: number[];
  points?: number[][] | number[][][];
  colour: string;
  pattern: string;
  opacity: number;
}

export interface Parts {
  bodies: Body[];
  marks: { name: string; colour: string; trail: boolean }[];
  arrows: { name: string; colour: string }[];
  camera: { azimuth: number; elevation: number; follow: boolean };
  axes: string[];
}

export interface SystemData {
  name: string;
  title: string;
  python: string;
  coordinates: string[];
  angles: string[];
  constraints: number;
  holonomic: number;
  integrals: string[];
  parameters: { name: string; slot: number; values: number[] }[];
  q: number[];
  v: number[];
  step_size: number;
  steps: number;
  module: ModuleData;
  onto: { in: number; out: number };
  look: { in: number; out: number };
  parts: Parts;
}

export interface Content {
  format: number;
  version: string;
  turn: number;
  system: SystemData;
  methods: MethodData[];
  refused: { name: string; reason: string }[];
  served?: { catalogue: string[]; methods: string[]; waiting: string[] }; // by `noslip explore`
}

/** What a run is made from, and what the link holds. */
export interface Choice {
  parameters: number[]; // of all parameters, one after the other
  q: number[];
  v: number[];
  held: boolean[]; // speeds that stay when others are moved
  h: number;
  steps: number;
  methods: string[];
}

export type Asked =
  | { kind: "load"; system: SystemData; methods: MethodData[] }
  | { kind: "add"; method: MethodData }
  | { kind: "onto"; id: number; choice: Choice; held: boolean[] }
  | { kind: "run"; id: number; choice: Choice };

export interface Run {
  method: string;
  form: "relaxed" | "plain";
  width: number; // slots of a row
  rows: Float64Array;
  looks: Float64Array; // the numbers of the scene at each row
  failed: number; // the step that could not be solved, or 0
  ms: number; // of the steps alone
}

export type Told =
  | { kind: "ready" }
  | { kind: "onto"; id: number; q: number[]; v: number[]; off: number }
  | { kind: "progress"; id: number; part: number }
  | { kind: "run"; id: number; runs: Run[] }
  | { kind: "error"; text: string };
