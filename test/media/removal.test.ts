import { mkdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Media } from '#server/media/media.ts'
import { startHarness } from '#test/support/harness.ts'
import { commit, put, register, setTier, storedOf, upload } from '#test/support/media.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { loadTasks } from '#workers/task.ts'

/** The storage, and what it is to fail with. */
const world: { fails: Error | null } = { fails: null }
const failing =
  <A extends unknown[], T>(work: (...args: A) => Promise<T>) =>
  async (...args: A): Promise<T> => {
    if (world.fails) throw world.fails
    return work(...args)
  }
const watched = (media: Media): Media => ({
  ...media,
  storage: { ...media.storage, promote: failing(media.storage.promote), remove: failing(media.storage.remove) },
})
const harness = await startHarness({ env: { LOG_LEVEL: 'silent' }, providers: { media: watched } })
const project = await harness.project()
await setTier(harness, project, 'pro')
const { services } = harness.running

afterEach(() => {
  world.fails = null
  harness.setTime(null)
})

const maintain = async () => {
  const { jobs } = await loadTasks()
  await jobs.find(({ name }) => name === 'fleet__maintain')?.run(services, {})
  await project.drain()
}
const storedOfAsset = async (id: string) => (await storedOf(harness, project)).filter((name) => name.includes(id))
const statusOf = async (id: string) =>
  (await project.sql('select status from app.media_assets where id = $1', [id])).map(({ status }) => status)
/** As if written so many hours ago. */
const age = async (path: string, hours: number) => {
  const at = new Date(harness.now().getTime() - hours * 3_600_000)
  await utimes(join(services.config.DATA_DIR, 'media', project.id, path), at, at)
}

describe('an outage of the storage', () => {
  test('at a commit is 503, and the commit may be repeated', async () => {
    const user = await project.user()
    const { id, uploadUrl } = await register(user)
    await put(uploadUrl, 'hello')
    world.fails = new Error('no route to the storage')
    const read = [await user.get(`/client/media/${id}`), await project.admin.get(`/media/${id}`)]
    for (const answer of [await commit(user, id), ...read]) {
      expectRefusal(answer, 503, 'UPLOAD_UNVERIFIED')
      expect(answer.headers.get('retry-after')).toBe('2')
    }
    world.fails = null
    expect((await commit(user, id)).status).toBe(200)
  })

  test('at a deletion hides the asset, and a repeated deletion or the task removes its bytes', async () => {
    const user = await project.user()
    const [one, two] = [await upload(user), await upload(user)]
    world.fails = new Error('no route to the storage')
    for (const { id } of [one, two]) {
      expectRefusal(await user.delete(`/client/media/${id}`), 500, 'DELETE_FAILED')
      expectRefusal(await user.get(`/client/media/${id}`), 404, 'NOT_FOUND')
      expect(await storedOfAsset(id)).toHaveLength(1)
    }
    world.fails = null
    expect((await user.delete(`/client/media/${one.id}`)).data).toEqual({ id: one.id, deleted: true })
    expect(await storedOfAsset(one.id)).toEqual([])
    expectRefusal(await user.delete(`/client/media/${one.id}`), 404, 'NOT_FOUND')
    harness.advance(61)
    await project.drain()
    expect(await storedOfAsset(two.id)).toEqual([])
    expect(await project.sql('select from app.media_removals')).toEqual([])
  })
})

describe('the daily cleanup', () => {
  test('deletes uploads that never came after 24 hours, and commits those that came', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    // a session would not live so long
    const user = project.onBehalfOf((await project.user()).id)
    const [never, came, wrong] = [await register(user), await register(user), await register(user)]
    await put(came.uploadUrl, 'hello')
    await put(wrong.uploadUrl, 'hello')
    await project.sql('update app.media_assets set size_bytes = 4 where id = $1', [wrong.id])
    harness.setTime('2026-11-23T10:00:00Z')
    await maintain()
    expect([await statusOf(never.id), await statusOf(came.id)]).toEqual([['pending'], ['pending']])
    harness.setTime('2026-11-23T10:00:01Z')
    const young = await register(user)
    await maintain()
    expect([
      await statusOf(never.id),
      await statusOf(came.id),
      await statusOf(wrong.id),
      await statusOf(young.id),
    ]).toEqual([[], ['committed'], [], ['pending']])
    await project.drain()
    expect(await storedOfAsset(wrong.id)).toEqual([])
  })

  test('purges records seven days after the deletion', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const user = await project.user()
    const { id } = await upload(user)
    await user.delete(`/client/media/${id}`)
    harness.setTime('2026-11-29T10:00:00Z')
    await maintain()
    expect(await statusOf(id)).toEqual(['deleted'])
    harness.setTime('2026-11-29T10:00:01Z')
    await maintain()
    expect(await statusOf(id)).toEqual([])
    expect(await project.sql('select from app.media_removals')).toEqual([])
  })

  test('removes what crashes left, and nothing that is used or young', async () => {
    const user = await project.user()
    const asset = await upload(user)
    const open = await register(user)
    await put(open.uploadUrl, 'hello')
    const [path = ''] = await storedOfAsset(asset.id)
    const [pending = ''] = await storedOfAsset(open.id)
    const folder = path.slice(0, path.lastIndexOf('/'))
    const none = '019aa000-0000-7000-8000-0000000000aa'
    const left = [
      `${path}.abcdef012345.tmp`,
      `${folder}/${'0'.repeat(24)}`,
      `${folder}/${'0'.repeat(24)}.thumbnail.webp`,
      `uploads/${asset.id}/${'1'.repeat(24)}`,
      `${pending}.abcdef012345.tmp`,
      `uploads/${none}/${'2'.repeat(24)}`,
      `objects/aa/${none}/${'3'.repeat(24)}`,
    ]
    const young = `objects/aa/${none}/${'4'.repeat(24)}`
    const derived = `${path}.thumbnail.webp`
    for (const name of [...left, young, derived]) {
      const file = join(services.config.DATA_DIR, 'media', project.id, name)
      await mkdir(join(file, '..'), { recursive: true })
      await writeFile(file, 'x')
    }
    for (const name of [...left, derived, path, pending]) await age(name, 25)
    await age(young, 23)
    await maintain()
    const stored = await storedOf(harness, project)
    for (const name of left) expect(stored, name).not.toContain(name)
    for (const name of [young, derived, path, pending]) expect(stored, name).toContain(name)
  })
})

describe('users and projects', () => {
  test('a deleted user takes the files along, a reset as well', async () => {
    const [gone, reset] = [await project.user(), await project.user()]
    const [one, two] = [await upload(gone), await upload(reset)]
    const pending = await register(gone)
    await put(pending.uploadUrl, 'hello')
    expect((await project.admin.delete(`/users/${gone.id}`)).status).toBe(200)
    const answer = await project.admin.delete(`/users/${reset.id}/reset?sections=media`)
    expect(answer.data.rows_deleted).toEqual({ media: 1 })
    await project.drain()
    for (const { id } of [one, two, pending]) expect(await storedOfAsset(id)).toEqual([])
    expect((await fetch(one.storage_url)).status).toBe(404)
    const [sums] = await project.sql(
      `select (select sum(objects)::int from app.media_totals) as counted,
              (select count(*)::int from app.media_assets where status = 'committed') as real`,
    )
    expect(sums.counted).toBe(sums.real)
  })

  test('a merge gives the files to the survivor', async () => {
    const [anonymous, survivor] = [await project.user(), await project.user()]
    const { id, key } = await upload(anonymous)
    const merged = await survivor.post('/client/auth/merge', { from_session_token: anonymous.sessionToken })
    expect([merged.status, merged.data?.merged.media_assets], merged.text).toEqual([200, 1])
    expect((await survivor.get(`/client/media/${id}`)).data).toMatchObject({ id, key, uploaded_by: survivor.id })
    const signed = await survivor.post('/client/media/presign', { bucket: 'media', key, method: 'GET' })
    expect(await (await fetch(signed.data.url)).text()).toBe('hello')
  })

  test('an export has the records of the files', async () => {
    const user = await project.user()
    const { id, key } = await upload(user)
    const exported = await project.admin.get(`/users/${user.id}/export`)
    expect(exported.text).toContain(id)
    expect(exported.text).toContain(key)
    expect(exported.text).not.toContain('object_version')
  })

  test('a deleted project loses all bytes, and its URLs lead nowhere', async () => {
    const doomed = await harness.project()
    const asset = await upload(await doomed.user())
    const { uploadUrl } = await register(await doomed.user())
    const answer = await doomed.developer.delete(`/admin/projects/${doomed.id}`)
    expect(answer.data.file_purge).toEqual({ locations: 1 })
    const { jobs } = await loadTasks()
    const [{ id }] = await harness.control('select id from app.file_purges where project_id = $1', [doomed.id])
    await jobs.find(({ name }) => name === 'files__purge')?.run(services, { purge_id: id })
    expect(await storedOf(harness, doomed)).toEqual([])
    expect((await fetch(asset.storage_url)).status).toBe(404)
    expect((await put(uploadUrl, 'hello')).status).toBe(403)
  })
})
