import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { runJobs } from '#test/support/accounts.ts'
import { startControlWebhooks } from '#test/support/control_webhooks.ts'
import { companyOf, organizationOf } from '#test/support/organizations.ts'
import { answering } from '#test/support/webhooks.ts'

const hooks = await startControlWebhooks()
const { harness, watch, work, bodies } = hooks
const owner = await harness.developer()

/** The types that came, in no order. */
const types = () =>
  bodies()
    .map(({ type }) => type)
    .sort()

describe('events', () => {
  test('of a project, from its creation to its deletion, without what is secret', async () => {
    await watch(owner)
    const project = await harness.project({ developer: owner })
    const key = await owner.post(`/admin/projects/${project.id}/api-keys`, {
      key_type: 'client',
      environment: 'production',
    })
    expect(key.status, key.text).toBe(201)
    await owner.delete(`/admin/projects/${project.id}`)
    await work()
    expect(types()).toEqual([
      'api_key.created',
      'api_key.created',
      'api_key.created',
      'api_key.revoked',
      'api_key.revoked',
      'api_key.revoked',
      'project.created',
      'project.deleted',
      'project.provisioned',
    ])
    expect(bodies().every(({ project_id }) => project_id === project.id)).toBe(true)
    const [provisioned] = bodies('project.provisioned')
    expect(provisioned.data).toMatchObject({ id: project.id, provisioning: { status: 'ready', error: null } })
    const [revoked] = bodies('api_key.revoked')
    expect(Object.keys(revoked.data).sort()).toEqual([
      'created_at',
      'environment',
      'expires_at',
      'id',
      'is_active',
      'key_prefix',
      'key_type',
      'last_used_at',
    ])
    expect(revoked.data.is_active).toBe(false)
    const stored = await harness.control(
      'select k.key_hash, s.sealed from app.api_keys k join app.project_signing_keys s using (project_id)',
    )
    const sent = JSON.stringify(bodies())
    for (const { key_hash, sealed } of stored)
      for (const secret of [key_hash, sealed]) expect(sent).not.toContain(secret)
    for (const text of [project.clientKey, project.serverKey, key.data.key]) expect(sent).not.toContain(text)
    expect(stored.length).toBeGreaterThan(0)
  })

  test('of a provisioning that failed, and of one that could not begin', async () => {
    await watch(owner, { event_types: ['project.provisioning_failed'] })
    const { data } = await owner.post('/admin/projects', { name: 'broken' })
    await harness.control(
      `update app.tenants set status = 'failed', error = '{"code": "X", "message": "m"}' where project_id = $1`,
      [data.project.id],
    )
    const open = await harness.control('update app.clusters set is_open = false where is_open returning id')
    const later = await owner.post('/admin/projects', { name: 'nowhere' })
    await harness.control('update app.clusters set is_open = true where id = any ($1)', [open.map(({ id }) => id)])
    expect(later.data.provisioning_status).toBe('failed')
    await work()
    expect(bodies().map(({ project_id, data: sent }) => [project_id, sent.name, sent.provisioning.error.code])).toEqual(
      [
        [data.project.id, 'broken', 'X'],
        [later.data.project.id, 'nowhere', 'NOT_STARTED'],
      ],
    )
  })

  test('of members who join and leave, with what members see of each other', async () => {
    const team = await companyOf(harness)
    await watch(team.owner, { organization_id: team.id, event_types: ['member.joined', 'member.removed'] })
    const late = await team.join('viewer')
    await late.delete(`/admin/organizations/${team.id}/members/${late.id}`)
    // an account that is deleted leaves its id, and no address
    const gone = await team.join('viewer')
    expect(
      (
        await gone.post('/auth/developer/account/delete', {
          confirm: gone.email,
          current_password: 'a long passphrase',
        })
      ).status,
    ).toBe(202)
    await work()
    const member = (developer: { id: string }, email: string | null) => ({
      developer_id: developer.id,
      email,
      name: null,
      role: 'viewer',
      joined_at: expect.any(String),
    })
    const came = bodies().map(({ type, project_id, organization_id, data }) => [
      type,
      project_id,
      organization_id,
      data,
    ])
    expect(came).toHaveLength(4)
    expect(came).toEqual(
      expect.arrayContaining([
        ['member.joined', null, team.id, member(late, late.email)],
        ['member.removed', null, team.id, member(late, late.email)],
        ['member.joined', null, team.id, member(gone, gone.email)],
        ['member.removed', null, team.id, member(gone, null)],
      ]),
    )
  })

  test('of a domain, when it is verified', async () => {
    await watch(owner, { event_types: ['domain.verified'] })
    const project = await harness.project({ developer: owner })
    await harness.control(`select internal.domain_put($1, 'mail.example', 'email')`, [project.id])
    await harness.control(`select internal.domain_put($1, 'mail.example', 'email', 'verified')`, [project.id])
    await harness.control(`select internal.domain_put($1, 'mail.example', 'email', 'verified')`, [project.id])
    await work()
    expect(bodies()).toMatchObject([
      { type: 'domain.verified', project_id: project.id, data: { domain: 'mail.example', status: 'verified' } },
    ])
    expect(JSON.stringify(bodies())).not.toContain('sealed')
  })

  test('of the audit trail, for those who ask for it by name', async () => {
    await watch(owner)
    const named = await watch(owner, { event_types: ['audit.event'] })
    const project = await harness.project({ developer: owner })
    await work()
    expect(hooks.bodies('audit.event').length).toBeGreaterThan(0)
    const rows = await harness.control('select webhook_id, event_name from app.webhook_deliveries')
    expect(
      rows.filter(({ event_name }) => event_name === 'audit.event').every((row) => row.webhook_id === named.id),
    ).toBe(true)
    expect(
      rows.filter((row) => row.webhook_id === named.id).every(({ event_name }) => event_name === 'audit.event'),
    ).toBe(true)
    const [created] = bodies('audit.event').filter(({ data }) => data.action === 'projects.create')
    const { data: trail } = await project.admin.get('/audit-events?action=projects.create')
    expect(created).toMatchObject({ project_id: project.id, organization_id: named.organization_id })
    expect(created.data).toEqual(trail[0])
  })

  test("of the trail in a project's own database, once it is sealed, since the webhook watches it", async () => {
    const project = await harness.project({ developer: owner })
    const make = async (key: string) =>
      expect((await project.admin.post('/roles', { key, name: key })).status, key).toBe(201)
    await make('before')
    await project.drain()
    harness.advance(1)
    const hook = await watch(owner, { event_types: ['audit.event'] })
    harness.advance(1)
    await make('first')
    await make('second')
    await project.drain()
    // a worker that died before it stored how far it had come reports the same again
    await harness.control('delete from app.webhook_audit_cursors')
    harness.advance(1)
    await make('third')
    await project.drain()
    await work()
    const roles = () => bodies('audit.event').filter(({ data }) => data.action === 'roles.create')
    expect(roles().map(({ data }) => data.changes.key[1])).toEqual(['first', 'second', 'third'])
    const { data: trail } = await project.admin.get('/audit-events?action=roles.create&limit=1')
    expect(roles()[2]).toMatchObject({ project_id: project.id, organization_id: hook.organization_id, data: trail[0] })

    // what happens while it is switched off is not made up for
    const path = `/admin/control-plane-webhooks/${hook.id}`
    await owner.patch(path, { status: 'disabled' })
    // sealed, and so reported, when it is on again
    await make('unseen')
    harness.advance(1)
    await owner.patch(path, { status: 'active' })
    await make('seen')
    await project.drain()
    await work()
    expect(roles().map(({ data }) => data.changes.key[1])).toEqual(['first', 'second', 'third', 'seen'])
  })

  test('of a webhook of a project that has degraded, once, without the query of its address', async () => {
    const project = await harness.project({ developer: owner })
    const { data: watched } = await project.admin.post('/webhooks', {
      event_name: 'paid',
      target_url: `${hooks.receiver.url}?key=hidden`,
    })
    await watch(owner, { event_types: ['webhook.degraded'] })
    await project.sql(`update app.webhooks set status = 'degraded'`)
    const [task] = await project.sql(`select * from app.outbox where task = 'webhooks__notify'`)
    await project.drain()
    // a worker that died after it told of it tells of it again
    await project.sql(
      `insert into app.outbox (task, key, payload, due_at) values ($1, $2, $3, now() - interval '1 year')`,
      [task.task, task.key, task.payload],
    )
    await project.drain()
    await work()
    expect(bodies()).toMatchObject([
      {
        id: task.key,
        project_id: project.id,
        data: { id: watched.id, status: 'degraded', event_name: 'paid', target_url: hooks.receiver.url },
      },
    ])
    expect(JSON.stringify(bodies())).not.toContain('hidden')
  })
})

describe('an event', () => {
  test('goes to the webhooks of its organization, as that is when it happens', async () => {
    const [before, after] = [await organizationOf(owner), await organizationOf(owner)]
    const [first, second] = [
      await watch(owner, { organization_id: before.id }),
      await watch(owner, { organization_id: after.id }),
    ]
    const { data } = await owner.post('/admin/projects', { name: 'moving', organization_id: before.id })
    expect(
      (await owner.post(`/admin/projects/${data.project.id}/transfer`, { organization_id: after.id })).status,
    ).toBe(200)
    await harness.control(`update app.tenants set status = 'failed' where project_id = $1`, [data.project.id])
    const of = (id: string) =>
      harness.control('select event_name from app.webhook_deliveries where webhook_id = $1 order by 1', [id])
    expect((await of(first.id)).map(({ event_name }) => event_name)).toEqual([
      'api_key.created',
      'api_key.created',
      'project.created',
    ])
    expect((await of(second.id)).map(({ event_name }) => event_name)).toEqual(['project.provisioning_failed'])
  })

  test('that is not committed is not sent', async () => {
    await watch(owner, { event_types: ['project.created'] })
    const id = randomUUID()
    await expect(
      harness.control(
        `do $$ begin
           insert into app.projects (id, developer_id, name) values ('${id}', '${owner.id}', 'never');
           raise exception 'no';
         end $$`,
      ),
    ).rejects.toThrow('no')
    expect(await hooks.deliveries()).toEqual([])
    expect(await hooks.queued('webhooks__deliver')).toEqual([])
  })

  test('does not go to webhooks that are disabled, or that watch other types', async () => {
    const off = await watch(owner)
    await watch(owner, { event_types: ['member.joined'] })
    await owner.patch(`/admin/control-plane-webhooks/${off.id}`, { status: 'disabled' })
    await owner.post('/admin/projects', { name: 'one' })
    expect(await hooks.deliveries()).toEqual([])
  })

  test('of an organization that is deleted with its webhooks leaves nothing behind', async () => {
    const team = await organizationOf(owner)
    await watch(owner, { organization_id: team.id, event_types: ['*'] })
    await watch(owner, { organization_id: team.id, event_types: ['audit.event'] })
    hooks.say(answering(500))
    await owner.patch(`/admin/organizations/${team.id}`, { name: 'renamed' })
    await work()
    expect((await hooks.deliveries()).length).toBeGreaterThan(0)
    expect((await owner.delete(`/admin/organizations/${team.id}`)).status).toBe(200)
    await work()
    expect(await hooks.deliveries()).toEqual([])
    expect(await harness.control('select from app.webhooks where organization_id = $1', [team.id])).toEqual([])
    await runJobs(harness, 'control_webhooks__deliver')
  })
})
