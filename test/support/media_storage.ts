import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createFileStorage } from '#server/media/files.ts'
import type { MediaStorage, StoredName } from '#server/media/storage.ts'
import { put } from '#test/support/media.ts'

/** What every storage of media does. `open` is given a folder of its own. */
export const testStorage = (kind: string, open: (folder: string) => MediaStorage) =>
  describe(`the storage of ${kind}`, () => {
    let folder: string
    let storage: MediaStorage
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'media-'))
      storage = open(folder)
    })
    afterAll(async () => {
      await storage.close()
      await rm(folder, { recursive: true, force: true })
    })
    const fresh = () => ({ projectId: randomUUID(), assetId: randomUUID(), version: randomBytes(12).toString('hex') })
    type Of = ReturnType<typeof fresh>
    const arrive = async ({ projectId, assetId, version }: Of, text: string) => {
      const link = { projectId, assetId, version, key: 'user/x/a', mimeType: 'text/plain', sizeBytes: null }
      const url = await storage.uploadUrl(link, new Date(Date.now() + 60_000))
      if (url) expect((await put(url, text)).status).toBe(200)
      else await createFileStorage(join(folder, 'media')).receive(link, Readable.from([Buffer.from(text)]))
    }
    const textOf = async (name: Of, object = name.version, ...range: number[]) => {
      const parts: Buffer[] = []
      for await (const part of await storage.read({ ...name, object }, ...range)) parts.push(part as Buffer)
      return Buffer.concat(parts).toString()
    }
    const write = async (of: Of, object: string, text: string) => {
      const file = join(folder, randomUUID())
      await writeFile(file, text)
      await storage.write({ ...of, object }, file, 'image/webp')
    }
    const listOf = async ({ projectId }: Of) => {
      const all: StoredName[] = []
      for await (const part of storage.list(projectId)) all.push(...part)
      return all
    }

    test('an upload becomes an object once, whatever comes later', async () => {
      const of = fresh()
      expect(await storage.promote(of, () => undefined)).toBeNull()
      expect(await storage.stat({ ...of, object: of.version })).toBeNull()
      await arrive(of, 'hello')
      await expect(
        storage.promote(of, () => {
          throw new Error('refused')
        }),
      ).rejects.toThrow('refused')
      expect((await storage.promote(of, () => undefined))?.size).toBe(5)
      expect((await storage.stat({ ...of, object: of.version }))?.size).toBe(5)
      expect([await textOf(of), await textOf(of, of.version, 1, 3)]).toEqual(['hello', 'ell'])
      // again, as after a crash before the commit was noted
      expect((await storage.promote(of, () => undefined))?.size).toBe(5)
      const [name] = await listOf(of)
      expect(name).toMatchObject({
        assetId: of.assetId,
        version: of.version,
        isUpload: false,
        modifiedAt: expect.any(Date),
      })
    })

    test('what was derived goes with its version, everything with the asset', async () => {
      const of = fresh()
      const next = { ...of, version: randomBytes(12).toString('hex') }
      await arrive(of, 'one')
      await storage.promote(of, () => undefined)
      await write(of, `${of.version}.thumbnail.webp`, 'thumb')
      await write(of, `${of.version}.abc.webp`, 'variant')
      await arrive(next, 'two')
      await storage.promote(next, () => undefined)
      expect([...(await storage.derived(of.projectId, of.assetId))].sort()).toEqual(
        [`${of.version}.abc.webp`, `${of.version}.thumbnail.webp`].sort(),
      )
      await storage.removeVersion(of.projectId, of.assetId, of.version)
      expect((await listOf(of)).map(({ version }) => version)).toEqual([next.version])
      const late = { ...of, version: randomBytes(12).toString('hex') }
      await arrive(late, 'pending')
      expect((await listOf(of)).map(({ isUpload }) => isUpload).sort()).toEqual([false, true])
      await storage.remove(of.projectId, of.assetId)
      await storage.remove(of.projectId, of.assetId)
      expect(await listOf(of)).toEqual([])
    })

    test('names are listed in parts and removed; a project is purged, and no other', async () => {
      const [of, other] = [fresh(), fresh()]
      for (const each of [...Array.from({ length: 7 }, () => ({ ...fresh(), projectId: of.projectId })), other]) {
        await arrive(each, 'x')
        await storage.promote(each, () => undefined)
      }
      const [first, ...rest] = await listOf(of)
      expect(rest).toHaveLength(6)
      await storage.removeNames(of.projectId, [first?.path ?? ''])
      await storage.removeNames(of.projectId, [first?.path ?? ''])
      expect(await listOf(of)).toHaveLength(6)
      expect(await storage.files.locations(randomUUID())).toEqual([])
      const [location] = await storage.files.locations(of.projectId)
      expect(location).toEqual({ kind: 'media', path: of.projectId })
      for (const path of ['', other.projectId, '..'])
        await expect(storage.files.purge(of.projectId, { kind: 'media', path })).rejects.toThrow(/not the folder/)
      await storage.files.purge(of.projectId, { kind: 'media', path: of.projectId })
      await storage.files.purge(of.projectId, { kind: 'media', path: of.projectId })
      expect([(await listOf(of)).length, (await listOf(other)).length]).toEqual([0, 1])
    })
  })
