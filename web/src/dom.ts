/** Elements of the page. */

type Child = Node | string;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K, properties: Partial<Record<string, unknown>> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria-") || name === "role" || name === "for" || name === "style") made.setAttribute(name, String(value));
    else (made as unknown as Record<string, unknown>)[name] = value;
  }
  made.append(...children);
  return made;
}

/** Shows whether a field has been understood, to the eye and to a screen reader. */
export function mark(field: HTMLInputElement, good: boolean): void {
  field.classList.toggle("bad", !good);
  field.setAttribute("aria-invalid", String(!good));
}

/** A slider with an exact field beside it; `given` is called with every new number. Whole ones are not below `least`. */
export class Dial {
  readonly element: HTMLElement;
  readonly slider: HTMLInputElement;
  readonly field: HTMLInputElement;

  constructor(name: string, value: number, [low, high]: [number, number], given: (x: number) => void, more: Child[] = [], least: number | null = null) {
    const step = least === null ? "any" : 1;
    this.slider = el("input", { type: "range", min: String(low), max: String(high), step, "aria-label": `${name}, slider` });
    this.field = el("input", { type: "text", inputMode: "decimal", "aria-label": name, className: "exact", spellcheck: false });
    this.show(value);
    this.slider.addEventListener("input", () => {
      const x = Number(Number(this.slider.value).toPrecision(6));
      this.field.value = String(x);
      given(x);
    });
    this.field.addEventListener("change", () => {
      const x = Number(this.field.value);
      const good = this.field.value.trim() !== "" && Number.isFinite(x) && (least === null || (Number.isInteger(x) && x >= least));
      mark(this.field, good);
      if (!good) return;
      this.slider.value = String(x);
      given(x);
    });
    this.element = el("div", { className: "dial" }, el("span", { className: "name", title: name }, name), this.slider, this.field, ...more);
  }

  /** Another value, from elsewhere; the slider's range grows where it must. */
  show(x: number): void {
    if (x < Number(this.slider.min)) this.slider.min = String(x);
    if (x > Number(this.slider.max)) this.slider.max = String(x);
    this.slider.value = String(x);
    this.field.value = String(x);
    mark(this.field, true);
  }
}

export function select(name: string, options: [value: string, label: string][], value: string, chosen: (value: string) => void): HTMLSelectElement {
  const made = el("select", { "aria-label": name }, ...options.map(([v, label]) => el("option", { value: v, selected: v === value }, label)));
  made.addEventListener("change", () => chosen(made.value));
  return made;
}

export function button(label: string, title: string, pressed: () => void): HTMLButtonElement {
  const made = el("button", { type: "button", title, "aria-label": title }, label);
  made.addEventListener("click", pressed);
  return made;
}

export function download(name: string, data: Blob): void {
  const link = el("a", { href: URL.createObjectURL(data), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A text to look at and copy. */
export function showText(title: string, text: string): void {
  const area = el("textarea", { readOnly: true, value: text, rows: 14, spellcheck: false });
  const copy = button("Copy", "copy to the clipboard", () => {
    area.select();
    navigator.clipboard?.writeText(area.value).then(() => (copy.textContent = "Copied"), () => document.execCommand("copy"));
  });
  openDialog(title, area, copy);
}

/** A dialog with a button that closes it. */
export function openDialog(title: string, ...children: Child[]): HTMLDialogElement {
  const buttons = children.filter((x) => x instanceof HTMLButtonElement);
  const others = children.filter((x) => !(x instanceof HTMLButtonElement));
  const dialog = el("dialog", {}, el("h2", {}, title), ...others, el("div", { className: "actions" }, ...buttons, button("Close", "close", () => dialog.close())));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A canvas of this size in pixels of the page, all of one colour; its memory is taken anew only where the size is another. */
export function filled(canvas: HTMLCanvasElement, w: number, h: number, colour: string): CanvasRenderingContext2D | null {
  const context = canvas.getContext("2d");
  if (!context) return null;
  const ratio = devicePixelRatio || 1;
  const [width, height] = [Math.floor(w * ratio), Math.floor(h * ratio)];
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.setLineDash([]);
  [context.globalAlpha, context.lineWidth, context.fillStyle] = [1, 1, colour];
  context.fillRect(0, 0, w, h);
  return context;
}

/** A line through points, without those that lie on the pixel of the one before. */
export function trace(context: CanvasRenderingContext2D, count: number, at: (k: number) => [number, number]): void {
  let [x0, y0] = [NaN, NaN];
  for (let k = 0; k < count; k++) {
    const [x, y] = at(k);
    if (Math.abs(x - x0) + Math.abs(y - y0) < 0.7 && k < count - 1) continue;
    context.lineTo(x, y);
    [x0, y0] = [x, y];
  }
}
