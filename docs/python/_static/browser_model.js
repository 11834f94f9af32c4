import * as ort from "./onnxruntime/ort.wasm.bundle.min.mjs";

const element = (id) => document.getElementById(id);
const message = element("browser-message");

async function predict(session, x) {
  const input = new ort.Tensor("float64", Float64Array.from(x), [x.length, 1]);
  const { mean, std } = await session.run({ X: input });
  return x.map((value, n) => ({ x: value, mean: mean.data[n], std: std.data[n] }));
}

async function start() {
  // Several threads need a page that is isolated from others.
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(new URL("./sinc.onnx", import.meta.url).href);

  const slider = element("browser-x");
  const slide = async () => {
    const [{ x, mean, std }] = await predict(session, [slider.valueAsNumber]);
    element("browser-prediction").textContent = `${x.toFixed(1)}: ${mean.toFixed(3)} ± ${std.toFixed(3)}`;
  };

  const rows = element("browser-rows");
  for (const x of [-10, -1.5, 0, 4.5, 15]) {
    const row = rows.insertRow();
    row.innerHTML = `<td><input type="number" step="any" aria-label="x" value="${x}"></td><td></td><td></td>`;
  }
  const fill = async () => {
    const found = await predict(session, [...rows.querySelectorAll("input")].map((input) => input.valueAsNumber));
    found.forEach(({ mean, std }, n) => {
      // A cell without a number gives NaN, and so do its predictions. All digits are in the titles.
      [mean, std].forEach((value, k) => {
        const cell = rows.rows[n].cells[k + 1];
        [cell.textContent, cell.title] = Number.isNaN(value) ? ["", ""] : [value.toFixed(3), String(value)];
      });
    });
  };

  // A session predicts one table at a time: the next waits.
  let last = Promise.resolve();
  const queue = (work) => (last = last.then(work).catch(failed));
  slider.addEventListener("input", () => queue(slide));
  rows.addEventListener("input", () => queue(fill));
  await queue(slide);
  await queue(fill);
  message.textContent = "The model predicts in this browser.";
}

function failed(error) {
  message.textContent = `The model cannot predict: ${error.message}`;
}

start().catch(failed);
