// The Worker of a machine in a tab, loaded after Go's wasm_exec.js. It first receives the machine, in pieces of
// gzip that it compiles as they arrive, and null after the last piece. Go receives all later messages (main.go).
(async () => {
  const died = (reason) => postMessage({ id: 0, kind: "died", reason: String(reason) });
  const pieces = new ReadableStream({
    start: (machine) => (onmessage = ({ data }) => (data ? machine.enqueue(data) : machine.close())),
  });
  try {
    const go = new Go();
    const unpacked = pieces.pipeThrough(new DecompressionStream("gzip"));
    const machine = new Response(unpacked, { headers: { "Content-Type": "application/wasm" } });
    const { instance } = await WebAssembly.instantiateStreaming(machine, go.importObject);
    await go.run(instance);
    died("Go's program ended; the browser's console has its last words.");
  } catch (problem) {
    died(problem);
  }
})();
