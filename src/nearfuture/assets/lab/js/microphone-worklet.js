// Hands over what the microphone hears, in blocks of a fiftieth of a second.

class Samples extends AudioWorkletProcessor {
  #block = new Float32Array(Math.round(sampleRate / 50));
  #filled = 0;

  process([[channel]]) {
    for (const sample of channel ?? []) {
      this.#block[this.#filled] = sample;
      this.#filled += 1;
      if (this.#filled < this.#block.length) continue;
      this.port.postMessage(this.#block.slice());
      this.#filled = 0;
    }
    return true;
  }
}

registerProcessor("samples", Samples);
