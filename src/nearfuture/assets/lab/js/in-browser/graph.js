// Graphs of the lab, run by ONNX Runtime in this browser: a copy has it beside its pages.

const FOLDER = new URL("../../onnxruntime/", import.meta.url);

let runtime = null;

// ONNX Runtime, in one thread: file servers do not isolate pages, which threads would need.
async function loaded() {
  runtime ??= import(new URL("ort.wasm.min.mjs", FOLDER).href).then((ort) => {
    ort.env.wasm.wasmPaths = FOLDER.href;
    ort.env.wasm.numThreads = 1;
    return ort;
  });
  return runtime;
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
  const found = await ort.InferenceSession.create(address.href, options);
  const kinds = { float: [Float32Array, "float32"], int64: [BigInt64Array, "int64"] };
  return {
    // Runs on {name: {type, data, dims}}, and answers in the same form.
    async run(feeds) {
      const inputs = {};
      for (const [name, { type = "float", data, dims }] of Object.entries(feeds)) {
        const [List, called] = kinds[type];
        const values = type === "int64" ? List.from(data, BigInt) : List.from(data);
        inputs[name] = new ort.Tensor(called, values, dims);
      }
      return found.run(inputs);
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
