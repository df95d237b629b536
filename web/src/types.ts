/** What `noslip.web.content` writes into a page. Slots are counted in 8 bytes. */

export interface ModuleData {
  relaxed: string; // gzip in base64; with relaxed SIMD, and without
  plain: string;
  free: number; // the first address that nothing uses
}

export type Place = [slot: number, size: number];

export interface RowPlaces {
  step: number;
  t: Place;
  q: Place;
  turns: Place;
  v: Place;
  multipliers: Place;
  multiplier_t: Place;
  energy: Place;
  energy_scale: Place;
  constraint: Place;
  holonomic: Place;
  integrals: Record<string, number>;
  report: Record<string, number>; // of the solves; all but increment and residual are whole numbers
}

export interface MethodData {
  text: string; // as `integrators.parse` reads it
  name: string;
  order: number;
  preserves: string[];
  works: [text: string, url: string][];
  own_time: boolean;
  info: string; // the record of a run as JSON, without what is chosen here
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
  inputs: string[]; // those of the parameters that every step reads anew
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

/** An input over time: values from given times on, or straight lines between them. */
export interface Curve {
  on: boolean;
  between: "hold" | "linear";
  points: [t: number, value: number][]; // in the order of their times, the first at 0
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
  curves: Curve[]; // of each input
}

/** Where a quantity takes a value: an angle up to whole turns, either way (0) or only as it grows or falls. */
export interface Section {
  key: string; // "" for none
  value: number;
  way: -1 | 0 | 1;
}

/** Starts that are spread around the chosen one. */
export interface Cloud {
  members: number;
  spread: number; // the standard deviation in every coordinate and velocity
}

/** A start on the constraints; relaxed, where they did not let the held speeds stay. */
export interface Start {
  q: number[];
  v: number[];
  relaxed: boolean;
}

export type Asked =
  | { kind: "load"; system: SystemData; methods: MethodData[]; turn: number }
  | { kind: "add"; method: MethodData }
  | { kind: "run"; id: number; choice: Choice; held: boolean[] | null } // speeds that stay while the start is put on the constraints
  | { kind: "section"; id: number; choice: Choice; section: Section }
  | { kind: "cloud"; id: number; choice: Choice; cloud: Cloud };

export interface Run {
  method: string;
  form: "relaxed" | "plain";
  width: number; // slots of a row
  every: number; // steps between rows
  h: number;
  rows: Float64Array;
  looks: Float64Array; // the numbers of the scene at each row
  failed: number; // the step that could not be solved, or 0
  ms: number; // of the steps alone
}

/** The states in which a run meets a section, in the order of `states.keys`. */
export interface Crossings {
  method: string;
  states: Float64Array;
  more: boolean; // there were too many to keep
}

/** States of many members at the times of some frames, [frame][member][key of `states.keys`]. */
export interface Members {
  method: string;
  count: number;
  times: Float64Array;
  states: Float32Array;
  points: Float32Array; // in space, [frame][member][3]
  starts: Float64Array; // q and v, [member]
  ends: Float64Array; // as `states`, of the last frame alone with every digit
  failed: number; // members
}

export type Told =
  | { kind: "ready" }
  | { kind: "start"; id: number; start: Start | null }
  | { kind: "progress"; id: number; part: number }
  | { kind: "run"; id: number; runs: Run[] }
  | { kind: "section"; id: number; found: Crossings[] }
  | { kind: "cloud"; id: number; members: Members }
  | { kind: "error"; text: string };
