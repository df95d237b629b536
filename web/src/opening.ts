/** The step that a page opens with is a guess: it is halved while a method fails, until the reader chooses something. */

export class Opening {
  private left: number;
  private readonly guess: number;

  constructor(private readonly choice: { h: number }, fresh: boolean) {
    this.left = fresh ? 6 : 0;
    this.guess = choice.h;
  }

  /** The reader has chosen. */
  over(): void {
    this.left = 0;
  }

  /** Chooses another step where these runs failed, the guess again where none helped, and says so; or null. */
  again(runs: { failed: number }[]): string | null {
    if (!this.left || !runs.some((run) => run.failed)) return null;
    this.left -= 1;
    this.choice.h = this.left ? this.choice.h / 2 : this.guess;
    return this.left ? `A step of ${this.guess} failed, so the step is ${this.choice.h}.` : "";
  }
}
