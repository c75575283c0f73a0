// Sound as it comes: from the microphone, or from a recording as if somebody spoke it now.
// Each source has a rate, and gives blocks of samples to whoever starts it.

import { Refused } from "./refused.js";

const HEADER_BYTES = 44; // of the files that the lab's server sends: float32, one channel
const TURN_MS = 20;
const RAW = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
const WHY = {
  NotAllowedError: { key: "permission-denied" },
  NotFoundError: { key: "no-microphone" },
  NotReadableError: { key: "microphone-taken" },
};

// At this rate, or that of the microphone.
export async function microphone(rate = undefined) {
  if (!window.isSecureContext) throw new Refused({ key: "no-secure-context" });
  let media;
  try {
    media = await navigator.mediaDevices.getUserMedia({ audio: RAW });
  } catch (error) {
    throw new Refused({ ...(WHY[error.name] ?? { key: "microphone-failed" }), message: error.name });
  }
  const free = () => media.getTracks().forEach((track) => track.stop());
  let context;
  try {
    context = new AudioContext({ sampleRate: rate });
    await context.audioWorklet.addModule(new URL("microphone-worklet.js", import.meta.url));
  } catch (error) {
    free();
    context?.close();
    throw new Refused({ key: "microphone-failed", message: error.name });
  }
  const node = new AudioWorkletNode(context, "samples", { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
  return {
    rate: context.sampleRate,
    start(onSamples, onEnd) {
      node.port.onmessage = ({ data }) => onSamples(data);
      media.getAudioTracks()[0].addEventListener("ended", onEnd); // it was unplugged
      context.createMediaStreamSource(media).connect(node);
      context.resume();
    },
    stop() {
      node.port.onmessage = null;
      free();
      context.close();
    },
  };
}

// `blob` is a WAV from the lab's server.
export async function recording(blob) {
  const bytes = await blob.arrayBuffer();
  const rate = new DataView(bytes).getUint32(24, true);
  const samples = new Float32Array(bytes.slice(HEADER_BYTES));
  const url = URL.createObjectURL(blob);
  const loud = new Audio(url);
  let timer = null;
  let sent = 0;
  return {
    rate,
    start(onSamples, onEnd) {
      const began = performance.now();
      // Where there is no loudspeaker, it is played in silence.
      loud.play().catch(() => null);
      timer = setInterval(() => {
        const due = Math.min(samples.length, Math.floor(((performance.now() - began) * rate) / 1000));
        if (due > sent) onSamples(samples.subarray(sent, due));
        sent = due;
        if (sent < samples.length) return;
        clearInterval(timer);
        onEnd();
      }, TURN_MS);
    },
    stop() {
      clearInterval(timer);
      loud.pause();
      URL.revokeObjectURL(url);
    },
  };
}

// Blocks of samples as a WAV of float32, for endpoints that take a file.
export function wavFile(blocks, rate) {
  const count = blocks.reduce((sum, block) => sum + block.length, 0);
  const header = new DataView(new ArrayBuffer(HEADER_BYTES));
  const write = (at, text) => [...text].forEach((letter, n) => header.setUint8(at + n, letter.charCodeAt(0)));
  write(0, "RIFF");
  header.setUint32(4, 36 + 4 * count, true);
  write(8, "WAVEfmt ");
  header.setUint32(16, 16, true);
  header.setUint16(20, 3, true); // floating point
  header.setUint16(22, 1, true);
  header.setUint32(24, rate, true);
  header.setUint32(28, 4 * rate, true);
  header.setUint16(32, 4, true);
  header.setUint16(34, 32, true);
  write(36, "data");
  header.setUint32(40, 4 * count, true);
  return new Blob([header, ...blocks], { type: "audio/wav" });
}
