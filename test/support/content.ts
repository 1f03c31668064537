import { expect } from 'vitest'
import type { Project } from '#test/support/harness.ts'

/** Entries of a project, written as an administrator does; each answer must be good. */
export const contentOf = (project: Project) => {
  const good = async (answer: Promise<{ status: number; text: string; data: any }>) => {
    const { status, text, data } = await answer
    expect(status, text).toBeLessThan(300)
    return data
  }
  const at = (key: string, locale: string) => `/content/${key}/locales/${locale}`
  return {
    create: (key: string, fields: object = {}, more: object = {}) =>
      good(project.admin.post('/content', { key, content_type: 'article', fields, ...more })),
    save: (key: string, locale: string, fields: object) => good(project.admin.put(at(key, locale), { fields })),
    publish: (key: string, locale = 'en', more: object = {}) =>
      good(project.admin.post(`${at(key, locale)}/publish`, more)),
    unpublish: (key: string, locale = 'en') => good(project.admin.post(`${at(key, locale)}/unpublish`)),
    get: (key: string) => good(project.admin.get(`/content/${key}`)),
    list: async (query: string): Promise<string[]> =>
      (await good(project.admin.get(`/content?${query}`))).map(({ key }: any) => key),
    schema: (type: string, fields: object[]) => good(project.admin.put(`/content-types/${type}`, { fields })),
    clear: async () => {
      await project.sql('delete from app.content_entries')
      await project.sql('delete from app.content_types')
      await project.sql(`delete from app.outbox where task = 'content__publish'`)
    },
  }
}

export const segmentOf = async (project: Project, ...members: string[]): Promise<string> => {
  const [{ id }] = await project.sql(
    `insert into app.segments (key, name, kind) values ('s' || substr(md5(random()::text), 1, 12), 'S', 'static') returning id`,
  )
  for (const member of members) await project.sql('insert into app.segment_members values ($1, $2)', [id, member])
  return id
}
