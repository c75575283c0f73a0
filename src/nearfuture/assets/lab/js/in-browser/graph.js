// Graphs of the lab, run by ONNX Runtime in this browser: a copy has it beside its pages.

const FOLDER = new URL("../../onnxruntime/", import.meta.url);

let runtime = null;

// ONNX Runtime, in one thread: file servers do not isolate pages, which threads would need.
async function loaded() {
  runtime ??= import(new URL("ort.js", FOLDER).href).then((ort) => {
    const [mjs, wasm] = ["ort-wasm.js", "ort-wasm.wasm"].map((name) => new URL(name, FOLDER).href);
    ort.env.wasm.wasmPaths = { mjs, wasm };
    ort.env.wasm.numThreads = 1;
    return ort;
  });
  return runtime;
}

// One run after another: there is one memory for all of them.
let before = Promise.resolve();
function inTurn(work) {
  const mine = before.then(work);
  before = mine.catch(() => null);
  return mine;
}

const opened = new Map();

// Opens a graph once; `weights` is the name of a file beside it that it reads.
export async function open(path, weights = null) {
  if (!opened.has(path)) opened.set(path, session(path, weights));
  return opened.get(path);
}

async function session(path, weights) {
  const ort = await loaded();
  const address = new URL(path, FOLDER);
  const options = { executionProviders: ["wasm"] };
  if (weights) options.externalData = [{ path: weights, data: new URL(weights, address).href }];
  const found = await inTurn(() => ort.InferenceSession.create(address.href, options));
  const tensor = (type, data, dims) =>
    new ort.Tensor(type, type === "int64" ? BigInt64Array.from(data, BigInt) : Float32Array.from(data), dims);
  return {
    // What it reads, all zeros, in a batch of one.
    zeros() {
      const entries = found.inputMetadata.map(({ name, type, shape }) => {
        const dims = shape.map((size) => (typeof size === "number" ? size : 1));
        return [name, tensor(type, Array(dims.reduce((a, b) => a * b, 1)).fill(0), dims)];
      });
      return Object.fromEntries(entries);
    },
    // Runs on {name: {type, data, dims}}, and answers in the same form; so may a feed be.
    run(feeds) {
      const given = Object.entries(feeds).map(([name, each]) => [
        name,
        each instanceof ort.Tensor ? each : tensor(each.type ?? "float32", each.data, each.dims),
      ]);
      return inTurn(() => found.run(Object.fromEntries(given)));
    },
  };
}

// A tensor as numbers, nested by its shape.
export function numbers({ data, dims }) {
  let values = Array.from(data, Number);
  for (const size of dims.slice(1).reverse()) {
    const rows = [];
    for (let at = 0; at < values.length; at += size) rows.push(values.slice(at, at + size));
    values = rows;
  }
  return dims.length ? values : values[0];
}
