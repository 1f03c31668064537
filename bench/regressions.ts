// npm run bench:regressions: the four main benches once more, each beside the ratios of its last kept result (bench/ratios.json).
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { root } from '#server/root.ts'

const benches = ['call', 'http', 'collections', 'events']

const isWorse = (bench: string): boolean => {
  const { status } = spawnSync(process.execPath, [join(root, `bench/${bench}.ts`), '--compare'], { stdio: 'inherit' })
  return status !== 0
}

// what only one of two runs finds was the machine
const worse = benches.filter((bench) => isWorse(bench) && isWorse(bench))
if (worse.length > 0) {
  process.stderr.write(`Worse than what was kept, twice: ${worse.map((bench) => `bench:${bench}`).join(', ')}\n`)
  process.exitCode = 1
}
