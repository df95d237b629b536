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

/** A slider with an exact field beside it; `given` is called with every new number. */
export class Dial {
  readonly element: HTMLElement;
  readonly slider: HTMLInputElement;
  readonly field: HTMLInputElement;

  constructor(name: string, value: number, [low, high]: [number, number], given: (x: number) => void, more: Child[] = [], whole = false) {
    const step = whole ? 1 : "any";
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
      const good = this.field.value.trim() !== "" && Number.isFinite(x) && (!whole || (Number.isInteger(x) && x > 0));
      this.field.classList.toggle("bad", !good);
      if (good) given(x);
    });
    this.element = el("div", { className: "dial" }, el("span", { className: "name", title: name }, name), this.slider, this.field, ...more);
  }

  /** Another value, from elsewhere; the slider's range grows where it must. */
  show(x: number): void {
    if (x < Number(this.slider.min)) this.slider.min = String(x);
    if (x > Number(this.slider.max)) this.slider.max = String(x);
    this.slider.value = String(x);
    this.field.value = String(x);
    this.field.classList.remove("bad");
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
