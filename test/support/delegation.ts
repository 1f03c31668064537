import { expect } from 'vitest'
import { withBearer } from '#test/support/accounts.ts'
import type { Answer, Client, Harness } from '#test/support/harness.ts'
import { enrol, personalOf } from '#test/support/organizations.ts'

/** A service account and a client with its key. */
export const serviceAccountOf = async (
  harness: Harness,
  admin: Client,
  wanted: { organization_id: string; scopes?: string[]; project_ids?: string[] | null },
): Promise<{ id: string; key: string; client: Client; data: Answer['data'] }> => {
  const { status, data, text } = await admin.post('/admin/service-accounts', {
    name: 'Agents',
    scopes: ['*:write'],
    ...wanted,
  })
  expect(status, text).toBe(201)
  return { id: data.id, key: data.key, client: withBearer(harness.anyone, data.key), data }
}

/** An operator token and a client that sends it. */
export const operatorTokenOf = async (
  harness: Harness,
  maker: Client,
  wanted: object,
): Promise<{ id: string; token: string; client: Client; data: Answer['data'] }> => {
  const { status, data, text } = await maker.post('/admin/operator-tokens', { scopes: ['*:write'], ...wanted })
  expect(status, text).toBe(201)
  return { id: data.id, token: data.token, client: withBearer(harness.anyone, data.token), data }
}

/** A project in an organization with an admin, and a service account with every scope. */
export const delegationOf = async (
  harness: Harness,
  ceiling: { scopes?: string[]; project_ids?: string[] | null } = {},
) => {
  const project = await harness.project()
  const owner = project.developer
  const organization = await personalOf(owner)
  const admin = await harness.developer()
  await enrol(harness, organization, admin, 'admin')
  const account = await serviceAccountOf(harness, admin, { organization_id: organization, ...ceiling })
  return { project, owner, organization, admin, account, streaks: `/admin/projects/${project.id}/streaks` }
}

export const introspect = async (maker: Client, token: string) =>
  (await maker.post('/admin/operator-tokens/introspect', { token })).data

/** What introspection says of a token that is not valid. */
export const nothing = { active: false, scopes: [], project_id: null, organization_id: null, expires_at: null }
