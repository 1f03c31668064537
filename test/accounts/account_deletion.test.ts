import { hash } from '@node-rs/argon2'
import { afterEach, describe, expect, test } from 'vitest'
import { meetingAt, personalToken, withBearer } from '#test/support/accounts.ts'
import { type Answer, type Developer, startHarness } from '#test/support/harness.ts'
import { at, companyOf, enrol, organizationOf, personalOf } from '#test/support/organizations.ts'

const harness = await startHarness()
const { anyone } = harness
afterEach(() => harness.setTime(null))

const password = 'a long passphrase'
const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const remove = (developer: Developer, body: object = {}) =>
  developer.post('/auth/developer/account/delete', { confirm: developer.email, current_password: password, ...body })

describe('deleting an account', () => {
  test('ends every credential, leaves no address behind, and frees the address', async () => {
    const developer = await harness.developer()
    const { token } = await personalToken(developer)
    const held = withBearer(anyone, token)
    expect((await held.get('/auth/developer/me')).status).toBe(200)
    const second = await harness.signIn(developer)
    expect((await second.get('/auth/developer/me')).status).toBe(200)
    const removed = await remove(developer, { confirm: developer.email.toUpperCase() })
    expect([removed.status, removed.data]).toEqual([202, { deleted: true }])
    for (const credential of [developer, second, held]) {
      expect(refusalOf(await credential.get('/auth/developer/me'))).toEqual([401, 'INVALID_DEVELOPER_TOKEN'])
    }
    const refreshed = await anyone.post('/auth/developer/refresh', { refresh_token: second.refreshToken })
    expect(refusalOf(refreshed)).toEqual([401, 'INVALID_TOKEN'])
    for (const table of ['developers', 'developer_sessions', 'developer_tokens', 'organizations', 'audit_events']) {
      const found = await harness.control(
        `select from app.${table} t where to_json(t)::text like $1 or to_json(t)::text like $2`,
        [`%${developer.email}%`, `%${developer.id}%`],
      )
      expect([table, found.length]).toEqual([table, 0])
    }
    const again = await anyone.post('/auth/developer/signup', { email: developer.email, password })
    expect(again.status).toBe(201)
    expect(again.data.developer.id).not.toBe(developer.id)
  })

  test('needs the own address and the password', async () => {
    const developer = await harness.developer()
    const other = await remove(developer, { confirm: 'somebody@example.org' })
    expect([...refusalOf(other), other.error?.details.field]).toEqual([400, 'VALIDATION_ERROR', 'confirm'])
    const bare = await remove(developer, { current_password: undefined })
    expect([...refusalOf(bare), bare.error?.details.field]).toEqual([400, 'VALIDATION_ERROR', 'current_password'])
    const wrong = await remove(developer, { current_password: 'a wrong passphrase' })
    expect(refusalOf(wrong)).toEqual([401, 'INVALID_CREDENTIALS'])
    const { token } = await personalToken(developer)
    const body = { confirm: developer.email, current_password: password }
    const held = await withBearer(anyone, token).post('/auth/developer/account/delete', body)
    expect(refusalOf(held)).toEqual([403, 'SESSION_REQUIRED'])
    for (let n = 0; n < 19; n++) await remove(developer, { current_password: 'a wrong passphrase' })
    expect(refusalOf(await remove(developer))).toEqual([429, 'RATE_LIMIT_EXCEEDED'])
    expect((await developer.get('/auth/developer/me')).status).toBe(200)
  })

  test('a right password counts as none of the failed ones, whatever else is refused', async () => {
    const project = await harness.project()
    const { developer } = project
    for (let n = 0; n < 21; n++) expect(refusalOf(await remove(developer))).toEqual([409, 'PROJECTS_EXIST'])
    const elsewhere = await remove(developer, { confirm: 'somebody@example.org' })
    expect(refusalOf(elsewhere)).toEqual([400, 'VALIDATION_ERROR'])
    const again = await harness.anyone.post('/auth/developer/login', { email: developer.email, password })
    expect(again.status).toBe(200)
  })

  test('without a password needs a sign-in of the last ten minutes', async () => {
    const developer = await harness.developer()
    await harness.control('update app.developers set password_hash = null where id = $1', [developer.id])
    harness.advance(601)
    expect(refusalOf(await remove(developer, { current_password: undefined }))).toEqual([401, 'INVALID_CREDENTIALS'])
    harness.setTime(null)
    expect((await remove(developer, { current_password: undefined })).status).toBe(202)
  })
})

describe('a password', () => {
  test('is the same one composed and decomposed, and a hash of the form that was sent is renewed', async () => {
    const [apart, joined] = ['lo\u0308we im zoo', 'l\u00f6we im zoo']
    const { email, id } = await harness.developer()
    const raw = await hash(apart, { algorithm: 2, memoryCost: 8, timeCost: 1 })
    await harness.control('update app.developers set password_hash = $1 where id = $2', [raw, id])
    const login = (word: string) => anyone.post('/auth/developer/login', { email, password: word })
    expect((await login(joined)).status).toBe(401)
    expect((await login(apart)).status).toBe(200)
    expect((await login(joined)).status).toBe(200)
    const held = withBearer(anyone, (await login(apart)).data.access_token)
    const patch = { password: joined, current_password: apart }
    expect((await held.patch('/auth/developer/me', patch)).status).toBe(200)
    const confirm = { confirm: email, current_password: apart }
    expect((await held.post('/auth/developer/account/delete', confirm)).status).toBe(202)
  })
})

describe('projects and organizations', () => {
  test('the only owner of a project stays until its database is gone', async () => {
    const project = await harness.project()
    expect(refusalOf(await remove(project.developer))).toEqual([409, 'PROJECTS_EXIST'])
    expect((await project.developer.delete(`/admin/projects/${project.id}`)).status).toBe(200)
    expect(refusalOf(await remove(project.developer))).toEqual([409, 'PROJECTS_EXIST'])
    await harness.control('delete from app.projects where id = $1', [project.id])
    expect((await remove(project.developer)).status).toBe(202)
  })

  test('a personal organization with projects stays, whoever else owns it', async () => {
    const developer = await harness.developer()
    const home = await personalOf(developer)
    const second = await harness.developer()
    await enrol(harness, home, second, 'owner')
    const made = await second.post('/admin/projects', { name: 'Theirs', organization_id: home })
    expect(refusalOf(await remove(developer))).toEqual([409, 'PROJECTS_EXIST'])
    const team = (await organizationOf(second)).id
    await enrol(harness, team, developer, 'owner')
    const moved = await second.post(`/admin/projects/${made.data.project.id}/transfer`, { organization_id: team })
    expect(moved.status).toBe(200)
    expect((await remove(developer)).status).toBe(202)
  })

  test('the last owner of a team stays, and a team of one goes', async () => {
    const company = await companyOf(harness)
    const refused = await remove(company.owner)
    expect([...refusalOf(refused), refused.error?.details]).toEqual([
      409,
      'LAST_OWNER',
      { organization_id: company.id },
    ])
    const alone = await organizationOf(company.viewer)
    expect((await remove(company.viewer)).status).toBe(202)
    expect(await harness.control('select from app.organizations where id = $1', [alone.id])).toHaveLength(0)
    const members = (await company.owner.get(at(company.id, '/members'))).data.map((m: any) => m.developer_id)
    expect(members).not.toContain(company.viewer.id)
  })

  test('what they made for a team stays with its oldest owner', async () => {
    const company = await companyOf(harness)
    const second = await company.join('owner')
    const made = await second.post('/admin/projects', { name: 'Theirs', organization_id: company.id })
    expect((await remove(second)).status).toBe(202)
    const read = await company.owner.get(`/admin/projects/${made.data.project.id}`)
    expect(read.data.developer_id).toBe(company.owner.id)
  })

  test('a paid project that is inherited makes the heir a paying account', async () => {
    const company = await companyOf(harness)
    const second = await company.join('owner')
    const made = await second.post('/admin/projects', { name: 'Theirs', organization_id: company.id })
    await harness.control(`update app.projects set tier = 'pro' where id = $1`, [made.data.project.id])
    const state = async () => (await company.owner.get('/auth/developer/me')).data.account_state
    expect(await state()).not.toBe('paid')
    expect((await remove(second)).status).toBe(202)
    expect(await state()).toBe('paid')
  })

  test('of two owners who go at once one stays', async () => {
    const company = await companyOf(harness)
    const second = await harness.developer()
    await enrol(harness, company.id, second, 'owner')
    const answers = await meetingAt(harness, 'app.organizations', () => [remove(company.owner), remove(second)])
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409])
  })
})
