// A recording of the visitor's own, decoded by the browser at the rate of the recogniser.

const FLOAT32 = 3;
const HEADER_BYTES = 44;

async function own(_, { body }) {
  const { rate } = await (await fetch(new URL("../../onnxruntime/models/digits/model.json", import.meta.url))).json();
  const decoded = await new OfflineAudioContext(1, 1, rate).decodeAudioData(await body.arrayBuffer());
  const mono = new OfflineAudioContext(1, decoded.length, rate); // it mixes what has several channels
  const source = new AudioBufferSourceNode(mono, { buffer: decoded });
  source.connect(mono.destination);
  source.start();
  return wav((await mono.startRendering()).getChannelData(0), rate);
}

// Samples as a WAV file of float32, one channel.
function wav(samples, rate) {
  const header = new DataView(new ArrayBuffer(HEADER_BYTES));
  const write = (at, text) => [...text].forEach((each, place) => header.setUint8(at + place, each.charCodeAt(0)));
  const size = samples.byteLength;
  write(0, "RIFF");
  header.setUint32(4, HEADER_BYTES - 8 + size, true);
  write(8, "WAVEfmt ");
  header.setUint32(16, 16, true);
  header.setUint16(20, FLOAT32, true);
  header.setUint16(22, 1, true);
  header.setUint32(24, rate, true);
  header.setUint32(28, 4 * rate, true);
  header.setUint16(32, 4, true);
  header.setUint16(34, 32, true);
  write(36, "data");
  header.setUint32(40, size, true);
  return new Blob([header.buffer, samples], { type: "audio/wav" });
}

export const answers = { own };
