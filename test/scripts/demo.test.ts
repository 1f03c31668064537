import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '#server/root.ts'
import { programEnvironment } from '#test/support/process.ts'
import { runFolder, runVariable } from '#test/support/run.ts'

/** About ten seconds each, of which most is a server of its own; the limit is for a machine that does much else. */
const limit = 120_000

/** What the program wrote, as lines without the spaces before them. */
const told = async (...story: string[]): Promise<readonly string[]> => {
  const folder = await runFolder()
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [join(root, 'scripts/demo.ts'), ...story], {
    env: { ...programEnvironment, TMPDIR: folder, [runVariable]: folder },
    timeout: limit - 5000,
  })
  expect(stderr).toBe('')
  return stdout.split('\n').map((line) => line.trim())
}

test(
  'offline: both devices have the rows of both, and a minified crash is shown in its source',
  async () => {
    const lines = await told('offline')
    expect(lines).toEqual(
      expect.arrayContaining([
        'on the phone: Scales 20 min; on the tablet at home: Minuet 15 min',
        '1 report accepted, 0 left',
        'on the phone: Minuet 15 min, Scales 20 min; on the tablet: Minuet 15 min, Scales 20 min',
        "{ title: 'RangeError: There is no note 3', count: 1, app_versions: [ '1.4.0' ] }",
        'nextNote in src/lesson.ts:5',
      ]),
    )
    expect(lines.at(-2)).toMatch(/^That was the whole story, in [\d.]+ seconds\.$/)
  },
  limit,
)

test(
  'game: a season ends in its tiers, the last item has one buyer, and a review waits for its moderator',
  async () => {
    const lines = await told('game')
    expect(lines).toEqual(
      expect.arrayContaining([
        '1. Mia   promoted: silver -> gold',
        '3. Cleo  stayed: silver -> silver',
        '5. Eve   relegated: silver -> bronze',
        'Mia 60 -> 40 coins, stock 2 -> 1',
        'stock 1 -> 0, the shop says out_of_stock',
        'summary 5 stars (1 review) -> 3.5 stars (2 reviews)',
      ]),
    )
    expect(lines.filter((line) => /^(Cleo|Dan) +has it: 20 -> 0 coins, owns 1$/.test(line))).toHaveLength(1)
    expect(lines.filter((line) => /^(Cleo|Dan) +OUT_OF_STOCK: 20 -> 20 coins, owns 0$/.test(line))).toHaveLength(1)
    expect(lines.at(-2)).toMatch(/^That was the whole story, in [\d.]+ seconds\.$/)
  },
  limit,
)

test('another name than those of the stories ends with their names, before anything is started', async () => {
  const { code, stdout, stderr } = await told('golf').catch((error) => error)
  expect([code, stdout, stderr.trim()]).toEqual([1, '', 'npm run demo -- first | offline | game'])
})
