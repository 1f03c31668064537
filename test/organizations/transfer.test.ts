import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { meetingAt } from '#test/support/accounts.ts'
import { type Answer, startHarness } from '#test/support/harness.ts'
import { at, companyOf, enrol, organizationOf, personalOf } from '#test/support/organizations.ts'

const harness = await startHarness()
afterEach(() => harness.setTime(null))

const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const company = () => companyOf(harness)

describe('a transfer', () => {
  test('moves a project; both trails and the project say so', async () => {
    const { id, owner, viewer } = await company()
    const project = await harness.project({ developer: owner })
    const home = await personalOf(owner)
    expect(refusalOf(await viewer.get(`/admin/projects/${project.id}`))).toEqual([403, 'PROJECT_FORBIDDEN'])
    const moved = await project.admin.post('/transfer', { organization_id: id })
    expect(moved.data).toMatchObject({ id: project.id, organization_id: id, developer_id: owner.id })
    expect((await project.admin.post('/transfer', { organization_id: id })).status).toBe(200)
    expect((await viewer.get(`/admin/projects/${project.id}`)).status).toBe(200)
    for (const [organization, reader] of [
      [id, viewer],
      [home, owner],
    ] as const) {
      const { data } = await reader.get(at(organization, '/audit-events?action=projects.transfer'))
      expect(data).toHaveLength(1)
      expect(data[0]).toMatchObject({
        action: 'projects.transfer',
        actor: { type: 'developer', id: owner.id },
        target: { type: 'projects', id: project.id },
        changes: { organization_id: [home, id] },
      })
    }
    const { data } = await project.admin.get('/audit-events?action=projects.update')
    expect(data[0].changes.organization_id).toEqual([home, id])
  })

  test('needs the owner of both', async () => {
    const { id, owner, admin } = await company()
    const project = await harness.project({ developer: owner })
    const theirs = await company()
    await enrol(harness, theirs.id, owner, 'admin')
    const to = (organization: string) => project.admin.post('/transfer', { organization_id: organization })
    expect(refusalOf(await to(randomUUID()))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await to(theirs.id))).toEqual([403, 'ROLE_FORBIDDEN'])
    expect(refusalOf(await to('x'))).toEqual([400, 'VALIDATION_ERROR'])
    expect((await to(id)).status).toBe(200)
    expect(
      refusalOf(
        await admin.post(`/admin/projects/${project.id}/transfer`, { organization_id: await personalOf(admin) }),
      ),
    ).toEqual([403, 'ROLE_FORBIDDEN'])
  })

  test('and the deletion of its target at once: one of the two', async () => {
    const owner = await harness.developer()
    const project = await harness.project({ developer: owner })
    const { id } = await organizationOf(owner)
    const answers = await meetingAt(harness, 'app.projects', () => [
      project.admin.post('/transfer', { organization_id: id }),
      owner.delete(at(id)),
    ])
    const [moved, deleted] = answers.map(refusalOf)
    expect([
      [
        [200, undefined],
        [409, 'PROJECTS_EXIST'],
      ],
      [
        [404, 'NOT_FOUND'],
        [200, undefined],
      ],
    ]).toContainEqual([moved, deleted])
  })
})
