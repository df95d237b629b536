/** Frames of one size as an animated GIF: 255 colours for all of them, and LZW. */

const KEPT = 5; // bits of each of red, green, blue that colours are told apart by

export class Gif {
  private readonly frames: Uint16Array[] = [];

  constructor(
    private readonly width: number,
    private readonly height: number,
    private readonly delay: number, // hundredths of a second
  ) {}

  /** Another frame, as `getImageData` gives it. */
  add(pixels: Uint8ClampedArray): void {
    const frame = new Uint16Array(this.width * this.height);
    const cut = 8 - KEPT;
    for (let k = 0; k < frame.length; k++) {
      const at = 4 * k;
      frame[k] = ((pixels[at] >> cut) << (2 * KEPT)) | ((pixels[at + 1] >> cut) << KEPT) | (pixels[at + 2] >> cut);
    }
    this.frames.push(frame);
  }

  /** The file; `pause` is awaited after each frame. */
  async file(pause: (part: number) => Promise<void>): Promise<Blob> {
    const { palette, index } = this.colours();
    const low = (x: number): number[] => [x & 255, x >> 8];
    const word = (x: string): number[] => Array.from(x, (c) => c.charCodeAt(0));
    const head = [...word("GIF89a"), ...low(this.width), ...low(this.height), 0xf7, 0, 0, ...palette];
    const parts: BlobPart[] = [Uint8Array.from([...head, 0x21, 0xff, 11, ...word("NETSCAPE2.0"), 3, 1, 0, 0, 0])];
    for (const [k, frame] of this.frames.entries()) {
      parts.push(Uint8Array.from([0x21, 0xf9, 4, 4, ...low(this.delay), 0, 0, 0x2c, 0, 0, 0, 0, ...low(this.width), ...low(this.height), 0, 8]));
      parts.push(packed(frame.map((x) => index[x])));
      await pause((k + 1) / this.frames.length);
    }
    return new Blob([...parts, Uint8Array.from([0x3b])], { type: "image/gif" });
  }

  /** The most frequent colours, and for each colour of a frame the nearest of them. */
  private colours(): { palette: number[]; index: Uint8Array } {
    const count = new Uint32Array(1 << (3 * KEPT));
    for (const frame of this.frames) for (const x of frame) count[x] += 1;
    const used = Array.from(count.keys()).filter((x) => count[x]);
    const chosen = [...used].sort((a, b) => count[b] - count[a]).slice(0, 256);
    const parts = (x: number): number[] => [2 * KEPT, KEPT, 0].map((by) => ((x >> by) & (2 ** KEPT - 1)) * (255 / (2 ** KEPT - 1)));
    const known = chosen.map(parts);
    const index = new Uint8Array(count.length);
    for (const x of used) {
      const [r, g, b] = parts(x);
      let [best, least] = [0, Infinity];
      known.forEach(([r1, g1, b1], k) => {
        const away = (r - r1) ** 2 + (g - g1) ** 2 + (b - b1) ** 2;
        if (away < least) [best, least] = [k, away];
      });
      index[x] = best;
    }
    const palette = known.flat().map(Math.round);
    return { palette: [...palette, ...new Array<number>(768 - palette.length).fill(0)], index };
  }
}

/** LZW with codes of 9 to 12 bits, in blocks of at most 255 bytes. */
function packed(pixels: Uint16Array): Uint8Array<ArrayBuffer> {
  const [clear, end] = [256, 257];
  const known = new Int32Array(4096 * 256); // by code and next pixel; entries of an earlier table are told by its number
  const made: number[] = [];
  let [table, next, bits, held, filled] = [1, 258, 9, 0, 0];
  const put = (code: number): void => {
    held |= code << filled;
    filled += bits;
    while (filled >= 8) {
      made.push(held & 255);
      held >>>= 8;
      filled -= 8;
    }
  };
  put(clear);
  let code = pixels[0];
  for (let k = 1; k < pixels.length; k++) {
    const key = (code << 8) | pixels[k];
    if (known[key] >> 12 === table) {
      code = known[key] & 4095;
      continue;
    }
    put(code);
    code = pixels[k];
    if (next < 4096) {
      known[key] = (table << 12) | next;
      if (next === 1 << bits) bits += 1;
      next += 1;
    } else {
      put(clear);
      [table, next, bits] = [table + 1, 258, 9];
    }
  }
  put(code);
  put(end);
  if (filled) made.push(held & 255);
  const blocks: number[] = [];
  for (let k = 0; k < made.length; k += 255) {
    const part = made.slice(k, k + 255);
    blocks.push(part.length);
    for (const byte of part) blocks.push(byte);
  }
  blocks.push(0);
  return Uint8Array.from(blocks);
}
