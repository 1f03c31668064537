import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { Client, Project } from '#test/support/harness.ts'

type Changes = Record<string, { created: any[]; updated: any[]; deleted: string[] }>
type Pulled = {
  readonly changes: Changes
  readonly checkpoint: string
  readonly has_more: boolean
  readonly server_time: string
  readonly schema: Record<string, number>
}

/** Limits are for their own tests: the clock of others may stand still. The rows stay: a pull that brings nothing counts in one that is there. */
export const unlimited = (project: Project) =>
  project.sql(
    // who pulls now has a row that waits for nobody
    `update app.rate_limits set count = 0
      where key in (select key from app.rate_limits order by key for update skip locked)`,
  )

/** A collection of groups, whose rows every member reads and writes. */
export const ofMembers = { owner_scope: 'group', read_policy: 'member', write_policy: 'member:member' }

/** A device of a user, which keeps what it was told as an app would, and fails when it is told nonsense. */
export const deviceOf = (project: Project, client: Client, options: { readonly collections?: string[] } = {}) => {
  const client_id = randomUUID()
  const rows = new Map<string, any>()
  let checkpoint: string | null = null
  // a client that begins from nothing may have pushed before
  let isWhole = true
  const ask = (body: object = {}) =>
    client.post('/client/sync/pull', { client_id, checkpoint, ...options, ...body }).finally(() => unlimited(project))
  const page = async (body: object = {}): Promise<Pulled> => {
    const answer = await ask(body)
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  const take = (pulled: Pulled) => {
    for (const { created, updated, deleted } of Object.values(pulled.changes)) {
      for (const row of created) {
        if (!isWhole) expect(rows.has(row.id), `created, and held: ${row.id}`).toBe(false)
        rows.set(row.id, row)
      }
      for (const row of updated) {
        expect(rows.has(row.id), `updated, and not held: ${row.id}`).toBe(true)
        rows.set(row.id, row)
      }
      for (const id of deleted) rows.delete(id)
    }
    checkpoint = pulled.checkpoint
    isWhole &&= pulled.has_more
    return pulled
  }
  return {
    client_id,
    rows,
    ask,
    page,
    /** Everything there is, in pages. */
    async pull(body: object = {}) {
      const ids = { created: [] as string[], updated: [] as string[], deleted: [] as string[] }
      let pages = 0
      for (;;) {
        const pulled = take(await page(body))
        pages += 1
        for (const { created, updated, deleted } of Object.values(pulled.changes)) {
          ids.created.push(...created.map((row) => row.id))
          ids.updated.push(...updated.map((row) => row.id))
          ids.deleted.push(...deleted)
        }
        if (!pulled.has_more) return { ...ids, pages, checkpoint: pulled.checkpoint }
        const entries = Object.values(pulled.changes).flatMap((lists) => Object.values(lists).flat())
        expect(entries.length, 'a page with more has an entry').toBeGreaterThan(0)
      }
    },
    take,
    get checkpoint() {
      return checkpoint
    },
    set checkpoint(value) {
      checkpoint = value
      isWhole = value === null
    },
    async push(mutations: readonly object[], headers = {}): Promise<{ results: any[]; checkpoint_hint: string }> {
      const sent = mutations.map((each) => ({ id: randomUUID(), ...each }))
      const answer = await client.post('/client/sync/push', { client_id, mutations: sent }, headers)
      expect(answer.status, answer.text).toBe(200)
      for (const [n, { status, row }] of (answer.data.results as any[]).entries()) {
        if (status !== 'applied') continue
        const { row_id } = sent[n] as { row_id?: string }
        if (row) rows.set(row.id, row)
        else rows.delete(String(row_id))
      }
      return answer.data
    },
  }
}

export const put = (collection: string, row_id: string, data: object, more: object = {}) => ({
  op: 'put',
  collection,
  row_id,
  data,
  ...more,
})
export const patch = (collection: string, row_id: string, data: object, more: object = {}) => ({
  op: 'patch',
  collection,
  row_id,
  data,
  ...more,
})
export const remove = (collection: string, row_id: string, more: object = {}) => ({
  op: 'delete',
  collection,
  row_id,
  ...more,
})
