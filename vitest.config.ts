import { defineConfig } from 'vitest/config'

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
    expect: { poll: { timeout: 10_000 } },
    reporters: ['default'],
  },
})
