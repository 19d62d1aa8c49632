/** How the numbers came about, for those who doubt them, as they should. */
export function Method() {
  return (
    <details className="method">
      <summary>How this is measured</summary>
      <ul>
        <li>Each product is an n × n by n × n matrix product in 32-bit floats, of uniform values in [−1, 1) made from the seed.</li>
        <li>A time is the whole way: <code>Float32Array</code>s in, <code>Float32Array</code> out, uploads and downloads included. One warm-up product is left out.</li>
        <li>The median counts; MAD is the median distance from it. GFLOP/s are 2 n³ over the median, in 10⁹ a second.</li>
        <li>“Kernel alone” keeps the matrices on the GPU and takes the difference between short and long runs, so that what a submission costs drops out.</li>
        <li>“Against CPU” compares with SIMD code on the CPU if it was chosen, else with scalar code.</li>
        <li>Every element of a result is compared with a product in double precision. A result out of bounds has no speed.</li>
        <li>Products run in a worker, one after the other. Slow rows take fewer samples than asked for, and say so. Nothing leaves this page.</li>
      </ul>
    </details>
  );
}
