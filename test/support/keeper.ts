// Outlives a run by a moment: when its standard input ends, and with it the run, it ends and removes what is left of it. Started by
// run.ts in a process group of its own, so that no Ctrl-C reaches it.
import { basename } from 'node:path'
import { clear } from '#test/support/run.ts'

const [folder = ''] = process.argv.slice(2)
if (!basename(folder).startsWith('trellis-run-')) throw new Error(`not the folder of a run: ${folder}`)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
// a pipe closes; /dev/null, which the keeper of a stale run has, only ends
await new Promise((resolve) => {
  for (const event of ['end', 'close', 'error']) process.stdin.once(event, resolve)
  process.stdin.resume()
})
await clear(folder)
process.exit(0)
