import type { Reporter } from 'vitest/node'

/** So many may need a second try in a run; more is no accident. */
const most = 3

/**
 * Names the tests of the whole suite that passed only on their second try, with what failed on the first: clocks, kills and races share
 * their machine with others. Each is a defect to be mended, of the test or of what it tests.
 */
export const secondTries: Reporter = {
  onTestRunEnd(modules) {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const needed = tests.filter((test) => test.diagnostic()?.flaky)
    if (needed.length === 0) return
    const lines = needed.map((test) => {
      const [first] = test.result().errors ?? []
      return `  ${test.module.relativeModuleId} > ${test.fullName}: ${first?.message ?? 'no error is left'}`
    })
    process.stderr.write(`\nPassed on the second try:\n${lines.join('\n')}\n`)
    if (needed.length > most) {
      process.stderr.write(`At most ${most} may.\n`)
      process.exitCode = 1
    }
  },
}
