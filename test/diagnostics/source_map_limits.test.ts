import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { createSourceMaps, NoAnswer } from '#server/diagnostics/source_maps.ts'
import { personalToken, withBearer } from '#test/support/accounts.ts'
import { startHarness } from '#test/support/harness.ts'
import { setTier } from '#test/support/media.ts'
import { temporaryFolder } from '#test/support/process.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { mapOf, sourceMapsOf } from '#test/support/source_maps.ts'

const harness = await startHarness()
const project = await harness.project()
const { upload, list } = sourceMapsOf(harness, project)
const other = await harness.project()
afterEach(async () => void (await project.sql('delete from app.source_maps')))

/** Rows that are there, without the work of an upload. */
const fill = (releases: number, bundles: number, bytes: number) =>
  project.sql(
    `insert into app.source_maps (release, bundle, sha256, size, packed_size, updated_at)
     select r::text, 'b' || b, '', 1, $3, internal.now() - make_interval(days => 1000 - r)
       from generate_series(1, $1::int) r, generate_series(1, $2::int) b`,
    [releases, bundles, bytes],
  )
const releases = async () => [...new Set((await list('?limit=100')).map(({ release }) => release))]

describe('an upload', () => {
  test('answers what was stored, takes the place of a former one, and is in the audit trail', async () => {
    const first = await upload('1.4.0', 'assets/main.js', mapOf())
    expect(first.status).toBe(201)
    expect(first.data).toMatchObject({ release: '1.4.0', bundle: 'assets/main.js', size: mapOf().length })
    expect(first.data.sha256).toMatch(/^[0-9a-f]{64}$/)
    expect(first.data.packed_size).toBe(gzipSync(mapOf()).length)
    harness.advance(60)
    const again = await upload('1.4.0', 'assets/main.js', mapOf({ names: ['x'] }))
    expect([again.status, again.data.id]).toEqual([200, first.data.id])
    expect(again.data.sha256).not.toBe(first.data.sha256)
    expect(await list()).toEqual([again.data])
    const trail = await project.sql(`select action, target_id from app.audit_events where action like '%source_map%'`)
    expect(trail).toEqual(Array(2).fill({ action: 'diagnostics.source_map', target_id: first.data.id }))
  })

  test('is gzip, whose text may begin with the line that keeps scripts from loading it', async () => {
    const path = '/diagnostics/source-maps?release=1&bundle=a.js'
    expect((await upload('1', 'a.js', `)]}'\n${mapOf()}`)).status).toBe(201)
    expectRefusal(await project.admin.put(path, mapOf()), 415, 'UNSUPPORTED_MEDIA_TYPE')
    expectRefusal(
      await project.admin.put(path, mapOf(), { 'content-type': 'application/octet-stream' }),
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    )
    expectRefusal(
      await project.admin.put(path, mapOf(), { 'content-type': 'application/gzip' }),
      400,
      'VALIDATION_ERROR',
      'body',
    )
  })

  test.each([
    ['no JSON', 'hello'],
    ['no map', '{}'],
    ['a list', '[]'],
    ['version 2', mapOf({ version: 2 })],
    ['no mappings', mapOf({ mappings: '' })],
    ['broken mappings', mapOf({ mappings: '%%%' })],
    ['sources of another kind', mapOf({ sources: 7 })],
    ['too many sources', mapOf({ sources: Array(50_001).fill('a') })],
    ['too many mappings', mapOf({ mappings: 'AAAA,'.repeat(3_000_001) })],
    ['too many lines', mapOf({ mappings: `${';'.repeat(3_000_001)}AAAA` })],
    [
      'a section far away',
      JSON.stringify({ version: 3, sections: [{ offset: { line: 1e9, column: 0 }, map: JSON.parse(mapOf()) }] }),
    ],
    ['a section of nothing', JSON.stringify({ version: 3, sections: [null] })],
    [
      'sections in sections',
      JSON.stringify({ version: 3, sections: [{ offset: { line: 0, column: 0 }, map: { version: 3, sections: [] } }] }),
    ],
    [
      'too many sections',
      JSON.stringify({
        version: 3,
        sections: Array(1001).fill({ offset: { line: 0, column: 0 }, map: JSON.parse(mapOf()) }),
      }),
    ],
  ])('of %s is refused', async (_, body) => {
    const { status, error } = await upload('1', 'a.js', body)
    expect([status, error.code, error.details.field]).toEqual([400, 'VALIDATION_ERROR', 'body'])
    expect(await list()).toEqual([])
  })

  test('that unpacks to a gigabyte, or is large as it comes, is refused, and the next one is taken', async () => {
    const bomb = gzipSync(Buffer.alloc(1 << 30))
    expect((await upload('1', 'a.js', bomb)).error.details.reason).toMatch(/at most 67108864 bytes/)
    const large = Buffer.concat([gzipSync(mapOf()), Buffer.alloc(16_777_216)])
    expect(await upload('1', 'a.js', large)).toMatchObject({ status: 413, error: { code: 'PAYLOAD_TOO_LARGE' } })
    expect((await upload('1', 'a.js', gzipSync(mapOf()).subarray(0, 30))).error.code).toBe('VALIDATION_ERROR')
    expect((await upload('1', 'a.js', Buffer.alloc(0))).status).toBe(400)
    expect((await upload('1', 'a.js', mapOf())).status).toBe(201)
  })

  test.each(['', '/a.js', 'a//b.js', 'a b.js', 'a.js?x', 'a\\b.js', 'a'.repeat(201)])(
    'of the bundle "%s" is refused',
    async (bundle) => expect((await upload('1', bundle, mapOf())).error.code).toBe('INVALID_INPUT'),
  )
  test.each(['', 'a\nb', 'v'.repeat(65)])('of the release "%s" is refused', async (release) =>
    expect((await upload(release, 'a.js', mapOf())).error.code).toBe('INVALID_INPUT'),
  )
})

describe('limits', () => {
  test('a release has a hundred maps, of which one may be replaced', async () => {
    await fill(1, 100, 1)
    expect((await upload('1', 'one-more', mapOf())).error).toMatchObject({
      code: 'LIMIT_REACHED',
      details: { limit: 100 },
    })
    expect((await upload('1', 'b7', mapOf())).status).toBe(200)
    expect((await upload('2', 'b7', mapOf())).status).toBe(201)
  })

  test('of two uploads at once that would be the hundredth one is taken', async () => {
    await fill(1, 99, 1)
    const both = await Promise.all([upload('1', 'x', mapOf()), upload('1', 'y', mapOf())])
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
  })

  test('the oldest of more than twenty releases goes', async () => {
    await fill(20, 2, 1)
    await upload('1', 'b1', mapOf())
    expect(await releases()).toHaveLength(20)
    await upload('new', 'a.js', mapOf())
    const left = await releases()
    expect([left.length, left.includes('1'), left.includes('2'), left[0]]).toEqual([20, true, false, 'new'])
  })

  test('the oldest releases go where there are too many bytes, and a release alone is refused', async () => {
    await fill(3, 1, 20_000_000)
    await setTier(harness, project, 'free')
    await upload('new', 'a.js', mapOf())
    expect(await releases()).toEqual(['new', '3', '2'])
    await fill(4, 1, 52_428_800).catch(() => undefined)
    await project.sql(`update app.source_maps set packed_size = 52428800 where release = '3'`)
    expect((await upload('3', 'more', mapOf())).error).toMatchObject({
      code: 'LIMIT_REACHED',
      details: { limit: 52_428_800 },
    })
    await setTier(harness, project, 'pro')
    expect((await upload('3', 'more', mapOf())).status).toBe(201)
  })
})

describe('deletion', () => {
  test('of one map, and of all of a release', async () => {
    const { data } = await upload('1', 'a.js', mapOf())
    await upload('1', 'b.js', mapOf())
    await upload('2', 'b.js', mapOf())
    const path = `/diagnostics/source-maps/${data.id}`
    expect((await project.admin.delete(path)).data).toEqual({ deleted: true })
    expectRefusal(await project.admin.delete(path), 404, 'NOT_FOUND')
    expect((await list('?release=1')).map(({ bundle }) => bundle)).toEqual(['b.js'])
    expect((await project.admin.delete('/diagnostics/source-maps?release=1')).data).toEqual({ deleted: 1 })
    expect((await project.admin.delete('/diagnostics/source-maps?release=1')).data).toEqual({ deleted: 0 })
    expectRefusal(await project.admin.delete('/diagnostics/source-maps'), 400, 'INVALID_INPUT')
    expect(await releases()).toEqual(['2'])
    expect(await project.sql('select count(*)::int as n from app.source_map_contents')).toEqual([{ n: 1 }])
  })

  test('and reading are for developers of the project, with the scope of the area', async () => {
    const { data } = await upload('1', 'a.js', mapOf())
    expectRefusal(await other.admin.delete(`/diagnostics/source-maps/${data.id}`), 404, 'NOT_FOUND')
    expect((await other.admin.get('/diagnostics/source-maps')).data).toEqual([])
    const reading = withBearer(
      project.admin,
      (await personalToken(project.developer, { scopes: ['diagnostics:read'] })).token,
    )
    expect((await reading.get('/diagnostics/source-maps')).status).toBe(200)
    expectRefusal(await reading.delete(`/diagnostics/source-maps/${data.id}`), 403, 'SCOPE_REQUIRED')
    const put = await reading.put('/diagnostics/source-maps?release=1&bundle=b.js', mapOf(), {
      'content-type': 'application/gzip',
    })
    expectRefusal(put, 403, 'SCOPE_REQUIRED')
    for (const role of ['app_user', 'app_anon'] as const)
      await expect(project.as(role, {}, 'select content from app.source_map_contents')).rejects.toThrow(
        /permission denied/,
      )
  })
})

describe('the process', () => {
  const maps = (source: string, more = {}) =>
    temporaryFolder().then(async (folder) => {
      const program = join(folder, 'program.mjs')
      await writeFile(program, source)
      return createSourceMaps({ program, ...more })
    })
  const bytes = gzipSync(mapOf())

  test('is ended when it takes too long, and another answers the next question', async () => {
    const held = await maps(
      `process.on('message', ({ bytes }) => { if (bytes.length > 3) for (;;) {}; process.send({ kind: 'refused', reason: 'alive' }) })`,
      { timeoutMs: 300 },
    )
    const [slow, next] = await Promise.allSettled([held.check('a', bytes), held.check('b', new Uint8Array(1))])
    expect(slow).toMatchObject({ status: 'rejected', reason: { isBusy: false } })
    expect(next).toMatchObject({ status: 'fulfilled', value: { reason: 'alive' } })
    await held.close()
  })

  test('has a bound of questions that wait, and of those of one project', async () => {
    const held = await maps(`process.on('message', () => setInterval(() => {}, 1000))`)
    const asked = Array.from({ length: 6 }, () => held.check('a', bytes).catch((error: unknown) => error))
    const refused = await asked[5]
    expect(refused).toBeInstanceOf(NoAnswer)
    expect(refused).toMatchObject({ isBusy: true })
    const others = Array.from({ length: 9 }, (_, n) => held.check(`${n}`, bytes).catch((error: unknown) => error))
    expect(await others[8]).toMatchObject({ isBusy: true })
    await held.close()
    expect(await Promise.all([...asked, ...others])).toHaveLength(15)
  })

  test('keeps maps that it has read, and asks for those that it has not', async () => {
    const real = createSourceMaps()
    const place = { map: 'one', line: 1, column: 0 }
    expect(await real.trace('a', [place], {})).toEqual({ kind: 'lacking', maps: ['one'] })
    const source = { file: 'a.ts', line: 2, column: 1, enclosing: null, name: null }
    expect(await real.trace('a', [place], { one: bytes })).toMatchObject({ kind: 'traced', sources: [source] })
    expect(await real.trace('a', [place, { ...place, line: 9 }], {})).toMatchObject({ sources: [source, null] })
    expect(await real.trace('a', [{ ...place, map: randomUUID() }], {})).toMatchObject({ kind: 'lacking' })
    await real.close()
    await expect(real.check('a', bytes)).rejects.toThrow(NoAnswer)
  })
})
