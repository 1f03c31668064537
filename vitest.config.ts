import { defineConfig } from 'vitest/config'
import { secondTries } from './test/support/second_tries.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/setup.ts'],
    globalSetup: ['test/support/global.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // what is waited for may take long on a busy machine; what never comes fails all the same
    expect: { poll: { timeout: 30_000 } },
    // what is broken fails twice; alone, or in a part of the suite, a test has one try
    retry: process.env['TRELLIS_WHOLE_SUITE'] ? 1 : 0,
    reporters: ['default', secondTries],
  },
})
