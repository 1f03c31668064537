import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { root } from '#server/root.ts'
import type { Filled } from '#test/support/filled_project.ts'
import type { Project } from '#test/support/harness.ts'

/** A page as an area declares it, such as `users/$userId`, and its path in a project. */
export type ConsolePage = { readonly declared: string; readonly path: string }

/** Where the rows of pages about one come from. A subscription comes from a store, and the filled project has none. */
const lists: Readonly<Record<string, string>> = {
  'ai/prompts': '/ai/prompts',
  diagnostics: '/diagnostics/issues',
  email: '/email/campaigns',
  'files/buckets': '/media/buckets',
  'files/catalogs': '/media/catalogs',
  messages: '/messaging/conversations',
  'moderation-rules': '/moderation/rules',
  onboarding: '/onboarding/flows',
  'onboarding/codes': '/referrals',
  push: '/push/campaigns',
  xp: '/xp/rules',
}
/** What a page calls its row by, where it is not the id. */
const fields: Readonly<Record<string, string>> = {
  currencies: 'code',
  'email/templates': 'key',
  'files/buckets': 'name',
  'files/catalogs': 'slug',
  'push/templates': 'key',
}
const namesOf = (filled: Filled): Readonly<Record<string, string>> => ({
  users: filled.users[0]?.id ?? '',
  collections: 'songs',
  subscriptions: 'missing',
  flags: 'new_checkout',
  leaderboards: 'weekly-points',
})
const firstOf = async (project: Project, filled: Filled, place: string): Promise<string> => {
  const name = namesOf(filled)[place]
  if (name) return name
  const { data } = await project.admin.get(`${lists[place] ?? `/${place}`}?limit=1`)
  const [row] = data as Readonly<Record<string, string>>[]
  expect(row, `a row of ${place}`).toBeDefined()
  return row?.[fields[place] ?? 'id'] ?? row?.['key'] ?? row?.['name'] ?? ''
}

/** The pages that the areas declare, with a row of the filled project where they are about one. */
export const pagesOf = async (project: Project, filled: Filled): Promise<readonly ConsolePage[]> => {
  const folder = join(root, 'console/src')
  const found: string[] = []
  for (const name of await readdir(folder)) {
    const text = await readFile(join(folder, name, 'area.ts'), 'utf8').catch(() => '')
    found.push(...[...text.matchAll(/\bpath: '([^']*)'/g)].map(([, path = '']) => path))
  }
  return Promise.all(
    found.map(async (declared) => {
      const [place = '', name] = declared.split(/\/\$\w+/)
      return {
        declared,
        path: name === undefined ? declared : `${place}/${await firstOf(project, filled, place)}${name}`,
      }
    }),
  )
}
