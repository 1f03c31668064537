#!/usr/bin/env node
import { run } from './run.ts'

// what reads the answer may have seen enough: `trellis events tail | head`
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(0)
  })
}
process.once('SIGINT', () => process.exit(130))

const { stdin, stdout, stderr, env } = process
process.exitCode = await run({ stdin, stdout, stderr, env, argv: process.argv.slice(2), cwd: process.cwd() })
