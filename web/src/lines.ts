/** Lines through many points on a canvas. */

const PIECE = 25; // points of a stroke: a browser fills many short ones in half the time of a long one that goes up and down

/** A line that is drawn in pieces; its dashes go on from each to the next. */
export class Line {
  private x = NaN;
  private y = NaN;
  private points = 0; // of the piece
  private length = 0; // of all before it and in it

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly dash: number[],
  ) {
    context.setLineDash(dash);
  }

  to(x: number, y: number): void {
    if (x === this.x && y === this.y) return;
    const { context } = this;
    if (this.points === 0) {
      context.lineDashOffset = this.length;
      context.beginPath();
      context.moveTo(this.x, this.y); // of the first piece nothing, NaN
    }
    context.lineTo(x, y);
    if (this.dash.length && this.x === this.x) this.length += Math.hypot(x - this.x, y - this.y);
    [this.x, this.y] = [x, y];
    this.points += 1;
    if (this.points === PIECE) this.end();
  }

  end(): void {
    if (this.points) this.context.stroke();
    this.points = 0;
  }
}

/** A curve over whole pixels: of all points in a column the first, the lowest, the highest and the last, which cover as much. */
export function curve(line: Line, count: number, x: (k: number) => number, y: (k: number) => number): void {
  let [column, first, low, high, last] = [NaN, NaN, NaN, NaN, NaN];
  const flush = (): void => {
    line.to(column, first);
    if (low !== first && low !== last) line.to(column, low);
    if (high !== first && high !== last) line.to(column, high);
    line.to(column, last);
  };
  for (let k = 0; k < count; k++) {
    const there = Math.round(y(k));
    if (!Number.isFinite(there)) continue;
    const here = Math.round(x(k));
    if (here === column) {
      if (there < low) low = there;
      if (there > high) high = there;
      last = there;
      continue;
    }
    if (column === column) flush();
    column = here;
    first = low = high = last = there;
  }
  if (column === column) flush();
  line.end();
}
