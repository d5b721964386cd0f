// The Worker of a machine in a tab, behind Go's wasm_exec.js. Its first message is the machine, as gzip; from then on
// messages are Go's (main.go).
onmessage = async ({ data }) => {
  const died = (reason) => postMessage({ id: 0, kind: "died", reason: String(reason) });
  try {
    const go = new Go();
    const unpacked = new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip"));
    const machine = new Response(unpacked, { headers: { "Content-Type": "application/wasm" } });
    const { instance } = await WebAssembly.instantiateStreaming(machine, go.importObject);
    await go.run(instance);
    died("Go's program ended; the browser's console has its last words.");
  } catch (problem) {
    died(problem);
  }
};
