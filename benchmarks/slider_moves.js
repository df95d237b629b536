// Put into a page before its own script: `moved(name, value)` moves a slider and tells when what followed.
{
  let heard = () => {};
  const Own = Worker;
  window.Worker = class extends Own {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", (event) => heard(event.data)); // before the page hears it
    }
  };

  /** Resolves behind a frame: after what its callbacks drew has been laid out and painted. */
  const framed = () =>
    new Promise((done) => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => done();
      requestAnimationFrame(() => channel.port2.postMessage(0));
    });

  window.moved = async (name, value) => {
    const slider = document.querySelector(`input[aria-label='${name}, slider']`);
    const times = {};
    const drawn = new Promise((done) => {
      const watch = new MutationObserver(() => {
        times.drawn = performance.now();
        watch.disconnect();
        done();
      });
      watch.observe(document.body, { attributes: true, attributeFilter: ["data-done"] });
    });
    const painted = new Promise((done) => {
      heard = async (told) => {
        if (told.kind !== "run") return;
        heard = () => {};
        times.computed = performance.now();
        times.failed = told.runs.some((run) => run.failed);
        await framed(); // the frame that shows it, whether the page draws now or in it
        times.painted = performance.now();
        done();
      };
    });
    slider.value = value;
    const began = performance.now();
    slider.dispatchEvent(new Event("input"));
    await Promise.all([drawn, painted]);
    const since = (x) => x - began;
    return { computed: since(times.computed), drawn: since(times.drawn), painted: since(times.painted), failed: times.failed };
  };
}
