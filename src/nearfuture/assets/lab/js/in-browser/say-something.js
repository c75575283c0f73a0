// A recording of the visitor's own, decoded by the browser at the rate of the recogniser.

import { wavFile } from "../sound.js";

async function own(_, { body }) {
  const { rate } = await (await fetch(new URL("../../onnxruntime/models/digits/model.json", import.meta.url))).json();
  const decoded = await new OfflineAudioContext(1, 1, rate).decodeAudioData(await body.arrayBuffer());
  const mono = new OfflineAudioContext(1, decoded.length, rate); // it mixes what has several channels
  const source = new AudioBufferSourceNode(mono, { buffer: decoded });
  source.connect(mono.destination);
  source.start();
  return wavFile([(await mono.startRendering()).getChannelData(0)], rate);
}

export const answers = { own };
