import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { installedBinaries } from '#fleet/embedded/binaries.ts'
import { root } from '#server/root.ts'
import { runScript } from '#test/support/admin.ts'
import { run } from '#test/support/backups.ts'
import { createTestProject, endPrograms, startServer, temporaryFolder } from '#test/support/process.ts'
import { filesOfRelease, type Kept, makeRelease, readRelease } from '#test/support/release.ts'

afterAll(endPrograms, 60_000)

/** A folder of the last release, made by `npm run release:data`. */
const folder = join(root, 'test/releases')
const released = await readFile(filesOfRelease(folder).kept, 'utf8').catch(() => null)
const installed = (await installedBinaries(process.platform, process.arch)).version.split('.')[0]
const isUpgrade = released !== null && (JSON.parse(released) as Kept).postgres !== installed

// a cluster of another major version is upgraded by npm run db:upgrade, with binaries that are not here: proof:upgrade
test.skipIf(isUpgrade)(
  'data of the last release are migrated by the start: all that was answered then is there, and more is taken',
  { timeout: 240_000 },
  async () => {
    // until there is a release, what it will keep is made by this version
    const files = released ? filesOfRelease(folder) : await makeRelease(await temporaryFolder(), 'next')
    const kept = JSON.parse(await readFile(files.kept, 'utf8')) as Kept
    const env = { DATA_DIR: join(await temporaryFolder(), 'data'), SECRETS_KEY: kept.secretsKey }
    const restored = await run('restore', env, '--from', files.data)
    expect(restored.code, restored.output).toBe(0)

    const server = await startServer(env)
    expect(server.child.exitCode, server.output()).toBe(null)
    const found = await readRelease(server.url, kept)
    expect(found.before).toEqual(kept.answers)
    expect(found.hash).toBe(kept.asset.hash)
    expect(found.taken).toEqual({ note: 201, sameNote: 409, event: 201, credit: 200 })
    expect(found.after['experience']).toBe(Number(kept.answers['experience']) + 10)
    expect(found.after['notes']).toHaveLength(4)
    await createTestProject(server.url)
    const status = await runScript('scripts/database.ts', ['status'], env)
    expect(status, status.err).toMatchObject({ code: 0 })
    const doctor = await runScript('scripts/admin.ts', ['doctor'], env)
    expect(doctor.out).not.toMatch(/^FAILED (Postgres|lost|failed|privileges|migrations)/m)
  },
)
