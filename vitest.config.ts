import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/sequencer.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/setup.ts'],
    globalSetup: ['test/support/global.ts'],
    pool: 'forks',
    // a worker runs many files: the server's modules are evaluated once, not once a file
    isolate: false,
    sequence: { sequencer: LongestFirst },
    maxWorkers: Math.min(8, Math.max(2, availableParallelism())),
    // what is waited for may take long on a busy machine; what never comes fails all the same
    testTimeout: 180_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 30_000 }, requireAssertions: true },
  },
})
