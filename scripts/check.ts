// npm run check, lint, types: runs every step also when one before it failed, and says at the end which did.
import { spawn } from 'node:child_process'
import { once } from 'node:events'

const steps: Readonly<Record<string, readonly string[]>> = {
  lint: ['biome check .', 'node scripts/docs.ts --check'],
  types: ['tsc', 'tsc -p sdk --noEmit', 'tsc -p cli', 'tsc -p console'],
}

const failed: string[] = []
for (const step of process.argv.slice(2).flatMap((name) => steps[name] ?? [`unknown: ${name}`])) {
  // by a shell: npm run puts the programs of the packages on its path
  const [code] = (await once(spawn(step, { shell: true, stdio: 'inherit' }), 'exit')) as [number | null]
  if (code !== 0) failed.push(step)
}
if (failed.length > 0) {
  process.stderr.write(`Failed: ${failed.join('; ')}\n`)
  process.exitCode = 1
}
