import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { path, startControlWebhooks } from '#test/support/control_webhooks.ts'
import { companyOf, organizationOf, personalOf } from '#test/support/organizations.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { isSigned } from '#test/support/webhooks.ts'

const hooks = await startControlWebhooks()
const { harness, receiver, watch, work } = hooks
const owner = await harness.developer()
const shown = ({ secret: _secret, ...rest }: any) => rest

/** Every route of one webhook, and of one delivery, with a body that is valid. */
const calls = (id: string, delivery: string = randomUUID()) =>
  [
    ['GET', `${path}/${id}`],
    ['PATCH', `${path}/${id}`, {}],
    ['DELETE', `${path}/${id}`],
    ['POST', `${path}/${id}/rotate-secret`],
    ['POST', `${path}/${id}/test`],
    ['GET', `${path}/${id}/deliveries`],
    ['POST', `${path}/deliveries/${delivery}/replay`],
  ] as const

describe('a webhook', () => {
  test('is of the personal organization unless one is named, and shows its secret once', async () => {
    const hook = await watch(owner, { event_types: ['project.deleted', 'project.created', 'project.created'] })
    expect(hook).toEqual({
      id: expect.any(String),
      organization_id: await personalOf(owner),
      event_types: ['project.created', 'project.deleted'],
      target_url: receiver.url,
      status: 'active',
      secret: expect.stringMatching(/^[0-9a-f]{64}$/),
      created_at: hooks.start,
      updated_at: hooks.start,
    })
    harness.advance(1)
    const team = await organizationOf(owner)
    const second = await watch(owner, { organization_id: team.id })
    expect(second).toMatchObject({ organization_id: team.id, event_types: ['*'] })
    expect((await owner.get(`${path}/${hook.id}`)).data).toEqual(shown(hook))
    expect((await owner.get(path)).body).toEqual({ data: [shown(second), shown(hook)], total: 2, offset: 0, limit: 50 })
    expect((await owner.get(`${path}?organization_id=${team.id}`)).data).toEqual([shown(second)])
    expect((await owner.get(`${path}?limit=1&offset=1`)).data).toEqual([shown(hook)])
    // neither in the database nor in the trail
    const { data: trail } = await owner.get(`/admin/organizations/${team.id}/audit-events`)
    expect(JSON.stringify(trail)).not.toContain(second.secret)
    const stored = await harness.control(
      `select to_jsonb(w) as w, to_jsonb(s) as s from app.webhooks w, app.webhook_secrets s`,
    )
    expect(JSON.stringify(stored)).not.toContain(second.secret)
  })

  test('is changed field by field, and deleted with its deliveries', async () => {
    const hook = await watch(owner)
    harness.advance(60)
    const patch = async (body: object) => (await owner.patch(`${path}/${hook.id}`, body)).data
    expect(await patch({})).toEqual(shown(hook))
    const updated_at = '2026-12-01T10:01:00.000Z'
    expect(await patch({ status: 'disabled' })).toEqual({ ...shown(hook), status: 'disabled', updated_at })
    expect(await patch({ status: 'active', event_types: ['audit.event', 'member.joined'] })).toMatchObject({
      status: 'active',
      event_types: ['audit.event', 'member.joined'],
    })
    expect(await patch({ target_url: `${receiver.url}other` })).toMatchObject({ target_url: `${receiver.url}other` })
    await owner.post('/admin/projects', { name: 'one' })
    expect((await hooks.deliveries()).length).toBeGreaterThan(0)
    expect((await owner.delete(`${path}/${hook.id}`)).body).toEqual({ data: { deleted: true } })
    expectRefusal(await owner.get(`${path}/${hook.id}`), 404, 'NOT_FOUND')
    await work()
    expect(await hooks.deliveries()).toEqual([])
    expect(await harness.control('select from app.webhook_secrets')).toEqual([])
    expect(receiver.requests).toEqual([])
  })

  test('refuses types that do not exist, and a mixture with *', async () => {
    const hook = await watch(owner)
    for (const [event_types, field] of [
      [[], 'event_types'],
      [['x'], 'event_types.0'],
      [['audit.event', 'project.*'], 'event_types.1'],
      [['*', 'project.created'], 'event_types'],
      ['project.created', 'event_types'],
      [null, 'event_types'],
    ] as const) {
      expectInvalid(await owner.post(path, { target_url: receiver.url, event_types }), field)
      expectInvalid(await owner.patch(`${path}/${hook.id}`, { event_types }), field)
    }
    expectInvalid(await owner.patch(`${path}/${hook.id}`, { status: 'degraded' }), 'status')
    for (const request of [owner.post(path, []), owner.patch(`${path}/${hook.id}`, [])])
      expectRefusal(await request, 400, 'INVALID_BODY')
    expect(await hooks.hookStatus(hook.id)).toBe('active')
  })

  test('sends to public addresses over https only', async () => {
    const hook = await watch(owner)
    for (const [target_url, code] of [
      ['http://1.1.1.1/hook', 'TARGET_URL_NOT_HTTPS'],
      ['https://10.0.0.1/hook', 'TARGET_URL_NOT_ALLOWED'],
      ['https://[::ffff:169.254.169.254]/hook', 'TARGET_URL_NOT_ALLOWED'],
    ] as const) {
      expectRefusal(await owner.post(path, { event_types: ['*'], target_url }), 400, code, 'target_url')
      expectRefusal(await owner.patch(`${path}/${hook.id}`, { target_url }), 400, code, 'target_url')
      await harness.control('update app.webhooks set target_url = $1', [target_url])
      expectRefusal(await owner.post(`${path}/${hook.id}/test`), 400, code)
    }
  })

  test('is one of ten of an organization at most', async () => {
    const { id: organization_id } = await organizationOf(owner)
    const made = await Promise.all(
      Array.from({ length: 11 }, () =>
        owner.post(path, { organization_id, event_types: ['*'], target_url: receiver.url }),
      ),
    )
    expect(made.map(({ status }) => status).sort()).toEqual([...Array(10).fill(201), 409])
    expectRefusal(made.find(({ status }) => status === 409)!, 409, 'LIMIT_REACHED')
    await watch(owner)
  })

  test('lists refuse queries that are not valid', async () => {
    const hook = await watch(owner)
    expectRefusal(await owner.get(`${path}?limit=x`), 400, 'INVALID_INPUT')
    expectRefusal(await owner.get(`${path}?organization_id=x`), 400, 'INVALID_INPUT')
    for (const query of ['since=x', 'cursor=x', 'status=x', 'limit=x'])
      expectRefusal(await owner.get(`${path}/${hook.id}/deliveries?${query}`), 400, 'INVALID_INPUT')
  })
})

describe('who', () => {
  test('admins and owners of the organization, and nobody else', async () => {
    const team = await companyOf(harness)
    const hook = await watch(team.owner, { organization_id: team.id })
    await team.owner.post('/admin/projects', { name: 'one', organization_id: team.id })
    await hooks.harness.control(`update app.webhook_deliveries set status = 'failed'`)
    const [delivery] = await hooks.deliveries()
    const body = { organization_id: team.id, event_types: ['*'], target_url: receiver.url }
    const lists = [
      ['POST', path, body],
      ['GET', `${path}?organization_id=${team.id}`],
    ] as const
    for (const low of [team.developer, team.viewer]) {
      for (const [method, to, sent] of [...lists, ...calls(hook.id, delivery.id)])
        expectRefusal(await low.request(method, to, sent), 403, 'ROLE_FORBIDDEN')
      expect((await low.get(path)).data).toEqual([])
    }
    for (const [method, to, sent] of [...lists, ...calls(hook.id, delivery.id)])
      expectRefusal(await owner.request(method, to, sent), 404, 'NOT_FOUND')
    expect((await owner.get(path)).data).toEqual([])
    for (const [method, to, sent] of calls(randomUUID()))
      expectRefusal(await team.owner.request(method, to, sent), 404, 'NOT_FOUND')
    for (const [method, to, sent] of calls('x', 'x'))
      expectRefusal(await team.owner.request(method, to, sent), 400, 'INVALID_ID')
    expect((await team.admin.get(`${path}/${hook.id}`)).data).toEqual(shown(hook))
    expect((await team.admin.post(`${path}/deliveries/${delivery.id}/replay`)).status).toBe(202)
    expect((await team.admin.delete(`${path}/${hook.id}`)).status).toBe(200)
  })

  test('a removed member has no part in the webhooks that they made, which go on for the others', async () => {
    const team = await companyOf(harness)
    const hook = await watch(team.admin, {
      organization_id: team.id,
      event_types: ['member.removed', 'project.created'],
    })
    expect((await team.owner.delete(`/admin/organizations/${team.id}/members/${team.admin.id}`)).status).toBe(200)
    for (const [method, to, sent] of calls(hook.id))
      expectRefusal(await team.admin.request(method, to, sent), 404, 'NOT_FOUND')
    expect((await team.owner.get(`${path}/${hook.id}`)).data).toEqual(shown(hook))
    await team.owner.post('/admin/projects', { name: 'one', organization_id: team.id })
    // what they do in their own organization is nobody's here
    await team.admin.post('/admin/projects', { name: 'own' })
    await work()
    expect(hooks.bodies().map(({ type, data }) => [type, data.name ?? null, data.email ?? null])).toEqual([
      ['member.removed', null, team.admin.email],
      ['project.created', 'one', null],
    ])
  })
})

describe('the secret', () => {
  test('signs what is sent; after a rotation, what was queued before keeps the former one', async () => {
    const hook = await watch(owner, { event_types: ['project.created'] })
    await owner.post('/admin/projects', { name: 'before' })
    const rotated = await owner.post(`${path}/${hook.id}/rotate-secret`)
    expect(rotated.status).toBe(200)
    const { secret } = rotated.data
    expect(Object.keys(rotated.data)).toEqual(['secret'])
    expect(secret).toMatch(/^[0-9a-f]{64}$/)
    expect(secret).not.toBe(hook.secret)
    await owner.post('/admin/projects', { name: 'after' })
    await work()
    const [before, after] = receiver.requests
    expect([isSigned(before!, hook.secret), isSigned(before!, secret)]).toEqual([true, false])
    expect([isSigned(after!, hook.secret), isSigned(after!, secret)]).toEqual([false, true])
  })

  test('signs a test, which is stored nowhere', async () => {
    const hook = await watch(owner)
    const sent = await owner.post(`${path}/${hook.id}/test`)
    expect(sent.data).toEqual({
      status_code: 200,
      error: null,
      duration_ms: expect.any(Number),
      response_excerpt: 'ok',
      delivered: true,
    })
    const [request] = receiver.requests
    expect(isSigned(request!, hook.secret)).toBe(true)
    expect(JSON.parse(String(request?.body))).toEqual({
      id: request?.headers['x-service-event-id'],
      type: 'webhook.test',
      created_at: hooks.start,
      organization_id: hook.organization_id,
      project_id: null,
      data: shown(hook),
    })
    expect(request?.headers).toMatchObject({ 'x-service-attempt': '1', 'x-service-event-name': 'webhook.test' })
    expect(await hooks.deliveries()).toEqual([])
  })
})
