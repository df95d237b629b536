/** Where a run meets a section: between two steps, on the polynomial through the six states around. */

const MOST = 100_000; // states that are kept
const [WINDOW, MIDDLE] = [6, 2]; // states of a polynomial, and its middle interval

function weights(s: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => {
    let w = 1;
    for (let j = 0; j < count; j++) if (j !== i) w *= (s - j) / (i - j);
    return w;
  });
}

export class Watch {
  found: number[] = [];
  more = false;
  private readonly recent: Float64Array[] = [];
  private taken = 0;

  /** Of the number at `index` of a state; `turn` is 0 unless it is an angle. */
  constructor(
    private readonly index: number,
    private readonly value: number,
    private readonly turn: number,
    private readonly way: number,
  ) {}

  /** The next state, in the order of time. */
  take(state: Float64Array): void {
    const kept = this.recent.length < WINDOW ? new Float64Array(state.length) : (this.recent.shift() as Float64Array);
    kept.set(state);
    this.recent.push(kept);
    this.taken += 1;
    if (this.taken === WINDOW) for (let k = 0; k < MIDDLE; k++) this.between(k);
    if (this.taken >= WINDOW) this.between(MIDDLE);
  }

  /** After the last state: the intervals that no window had in its middle. */
  end(): void {
    const count = this.recent.length;
    for (let k = count === WINDOW ? MIDDLE + 1 : 0; k < count - 1; k++) this.between(k);
  }

  private level(x: number): number {
    return this.turn ? Math.floor((x - this.value) / this.turn) : Number(x >= this.value);
  }

  private between(k: number): void {
    const here = this.recent.map((state) => state[this.index]);
    const [before, after] = [this.level(here[k]), this.level(here[k + 1])];
    const way = Math.sign(after - before);
    if (!way || (this.way && way !== this.way)) return;
    if (this.found.length >= MOST * this.recent[0].length) {
      this.more = true;
      return;
    }
    const target = this.value + this.turn * Math.max(before, after);
    const at = (s: number): number => weights(s, here.length).reduce((sum, w, i) => sum + w * here[i], 0);
    let [low, high] = [k, k + 1];
    for (let i = 0; i < 52; i++) {
      const middle = (low + high) / 2;
      if (at(middle) < target === way > 0) low = middle;
      else high = middle;
    }
    const w = weights((low + high) / 2, here.length);
    for (let i = 0; i < this.recent[0].length; i++) this.found.push(this.recent.reduce((sum, state, j) => sum + w[j] * state[i], 0));
  }
}
