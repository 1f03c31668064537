import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startSecond } from '#test/support/second.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
const { fleet, projectCache } = harness.running.services
const names = ['create_database', 'run_migrations', 'create_roles', 'seed_defaults', 'verify']
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

afterEach(() => harness.setTime(null))

type ListedKey = {
  readonly id: string
  readonly key_prefix: string
  readonly is_active: boolean
  readonly expires_at: string | null
}

/** A project whose database nobody has begun to make: no workers run here. */
const unmade = async () => {
  const developer = await harness.developer()
  const { data } = await developer.post('/admin/projects', { name: 'Garden' })
  const id: string = data.project.id
  return {
    id,
    developer,
    data,
    status: () => developer.get(`/admin/projects/${id}/provisioning-status`),
    reprovision: (body: object = {}) => developer.post(`/admin/projects/${id}/reprovision`, body),
    signIn: () => harness.anyone.post('/client/auth/anonymous', {}, { 'x-api-key': data.api_keys.client.key }),
    tenant: (set: string, ...values: unknown[]) =>
      harness.control(`update app.tenants set ${set} where project_id = $1`, [id, ...values]),
  }
}

/** A cluster that this server does not know, so that every step on it fails. */
const unknownCluster = async () =>
  (await harness.control(`insert into app.clusters (name, is_open) values ($1, false) returning id`, [randomUUID()]))[0]
    .id

describe('API keys', () => {
  test.each([
    ['client', 'production', 'svc_live_ck_'],
    ['server', 'production', 'svc_live_sk_'],
    ['client', 'development', 'svc_dev_ck_'],
    ['server', 'development', 'svc_dev_sk_'],
  ])('a %s key for %s', async (key_type, environment, beginning) => {
    const { developer, id } = await unmade()
    const { status, data } = await developer.post(`/admin/projects/${id}/api-keys`, { key_type, environment })
    expect(status).toBe(201)
    expect(data.key).toMatch(new RegExp(`^${beginning}[0-9A-Za-z]{40}$`))
    expect(data).toEqual({
      key: data.key,
      prefix: data.key.slice(0, beginning.length + 6),
      type: key_type,
      environment,
    })
    const [newest] = (await developer.get(`/admin/projects/${id}`)).data.api_keys
    expect(newest).toMatchObject({ key_prefix: data.prefix, key_type, environment, is_active: true })
  })

  test.each([
    [{ environment: 'production' }, 'key_type'],
    [{ key_type: 'client' }, 'environment'],
    [{ key_type: 'admin', environment: 'production' }, 'key_type'],
    [{ key_type: 'client', environment: 'live' }, 'environment'],
    [{ key_type: null, environment: 'production' }, 'key_type'],
  ])('refuses %j', async (body, field) => {
    const { developer, id } = await unmade()
    const answer = await developer.post(`/admin/projects/${id}/api-keys`, body)
    expectRefusal(answer, 400, 'INVALID_INPUT')
    expect(answer.error?.details.field).toBe(field)
  })

  test('work at once, and stop at once when they are switched off, here and in another server', async () => {
    const second = await startSecond(harness)
    const project = await harness.project()
    const made = await project.admin.post('/api-keys', { key_type: 'client', environment: 'production' })
    const key = { 'x-api-key': made.data.key }
    const [here, there] = [harness.anyone.with(key), second.as(key)]
    for (const app of [here, there]) expect((await app.get('/client/auth/jwks')).status).toBe(200)

    const [newest] = (await project.admin.get('')).data.api_keys
    for (let times = 0; times < 2; times += 1) {
      const { status, data } = await project.admin.delete(`/api-keys/${newest.id}`)
      expect([status, data]).toEqual([200, { ...newest, is_active: false, last_used_at: expect.stringMatching(time) }])
      expectRefusal(await here.get('/client/auth/jwks'), 401, 'UNAUTHORIZED')
    }
    await expect.poll(async () => (await there.get('/client/auth/jwks')).status, { timeout: 10_000 }).toBe(401)
    // the others of the project stay
    expect((await project.app.get('/client/auth/jwks')).status).toBe(200)
  })

  test('of other projects, unknown and malformed ones cannot be switched off', async () => {
    const [mine, other] = [await unmade(), await unmade()]
    const [theirs] = (await other.developer.get(`/admin/projects/${other.id}`)).data.api_keys
    for (const keyId of [theirs.id, randomUUID(), 'none', mine.data.api_keys.client.prefix]) {
      expectRefusal(await mine.developer.delete(`/admin/projects/${mine.id}/api-keys/${keyId}`), 404, 'NOT_FOUND')
    }
    const after = (await other.developer.get(`/admin/projects/${other.id}`)).data.api_keys
    expect(after.every((key: { is_active: boolean }) => key.is_active)).toBe(true)
  })

  describe('rotate', () => {
    const keysOf = async (project: { admin: { get(path: string): Promise<{ data: { api_keys: ListedKey[] } }> } }) =>
      (await project.admin.get('')).data.api_keys
    const works = async (key: string) =>
      (await harness.anyone.get('/client/auth/jwks', { 'x-api-key': key })).status === 200

    test('with a grace period, until which both keys work', async () => {
      const project = await harness.project()
      const { data: old } = await project.admin.post('/api-keys', { key_type: 'server', environment: 'development' })
      const [former] = await keysOf(project)
      harness.setTime('2026-11-20T10:00:00.000Z')
      const { status, data } = await project.admin.post(`/api-keys/${former?.id}/rotate`, { grace_seconds: 3600 })
      expect(status).toBe(201)
      expect(data).toEqual({ ...old, key: data.key, prefix: data.key.slice(0, old.prefix.length) })
      expect(data.key).not.toBe(old.key)
      const listed = await keysOf(project)
      expect(listed.find(({ id }) => id === former?.id)).toMatchObject({
        is_active: true,
        expires_at: '2026-11-20T11:00:00.000Z',
      })
      expect(listed.find(({ key_prefix }) => key_prefix === data.prefix)).toMatchObject({
        is_active: true,
        expires_at: null,
      })
      expect([await works(old.key), await works(data.key)]).toEqual([true, true])
      // in its last minute the key is not served from a cache
      harness.advance(3599)
      projectCache.clear()
      expect(await works(old.key)).toBe(true)
      harness.advance(1)
      expectRefusal(await harness.anyone.get('/client/auth/jwks', { 'x-api-key': old.key }), 401, 'UNAUTHORIZED')
      expect(await works(data.key)).toBe(true)

      expect(await harness.control('select (api.api_keys_expire()).body::text as ended')).toEqual([
        { ended: '{"data" : 1}' },
      ])
      const after = (await keysOf(project)).filter(({ is_active }) => is_active)
      expect(after.map(({ id }) => id)).not.toContain(former?.id)
      expect(await harness.control('select (api.api_keys_expire()).body::text as ended')).toEqual([
        { ended: '{"data" : 0}' },
      ])
    })

    test('a day when nothing is said, and at once with 0, here and in another server', async () => {
      const second = await startSecond(harness)
      const project = await harness.project()
      harness.setTime('2026-11-20T10:00:00.000Z')
      const made = await project.admin.post('/api-keys', { key_type: 'client', environment: 'production' })
      const there = second.as({ 'x-api-key': made.data.key })
      expect([await works(made.data.key), (await there.get('/client/auth/jwks')).status]).toEqual([true, 200])
      const former = (await keysOf(project)).find(({ key_prefix }) => key_prefix === made.data.prefix)
      const { data } = await project.admin.post(`/api-keys/${former?.id}/rotate`, { grace_seconds: 0 })
      expect([await works(made.data.key), await works(data.key)]).toEqual([false, true])
      await expect.poll(async () => (await there.get('/client/auth/jwks')).status, { timeout: 10_000 }).toBe(401)
      const newest = (await keysOf(project)).find(({ key_prefix }) => key_prefix === data.prefix)
      expect((await project.admin.post(`/api-keys/${newest?.id}/rotate`, {})).status).toBe(201)
      expect((await keysOf(project)).find(({ id }) => id === newest?.id)).toMatchObject({
        expires_at: '2026-11-21T10:00:00.000Z',
      })
    })

    test('once: of two at once, and of what is deactivated, the second is refused', async () => {
      const project = await harness.project()
      const [key, other] = await keysOf(project)
      const rotate = (id = '') => project.admin.post(`/api-keys/${id}/rotate`, {})
      const both = await meetingBehind(
        harness.running.services.control.database,
        `select from app.api_keys where id = '${key?.id}' for update`,
        () => [rotate(key?.id), rotate(key?.id)],
      )
      expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
      expect(await keysOf(project)).toHaveLength(3)
      expectRefusal(await rotate(key?.id), 409, 'CONFLICT')
      await project.admin.delete(`/api-keys/${other?.id}`)
      expectRefusal(await rotate(other?.id), 409, 'CONFLICT')
      const theirs = (await keysOf(await harness.project()))[0]
      for (const id of [theirs?.id, randomUUID(), 'none']) expectRefusal(await rotate(id), 404, 'NOT_FOUND')
      for (const grace_seconds of [-1, 2_592_001, 1.5, '60'])
        expectRefusal(await project.admin.post(`/api-keys/${key?.id}/rotate`, { grace_seconds }), 400, 'INVALID_INPUT')
    })
  })

  test('say when they were used, to the minute', async () => {
    const project = await harness.project()
    const used = async () => {
      projectCache.clear()
      await project.app.get('/client/auth/jwks')
      const keys: { key_type: string; last_used_at: string }[] = (await project.admin.get('')).data.api_keys
      expect(keys.find(({ key_type }) => key_type === 'server')?.last_used_at).toBeNull()
      return keys.find(({ key_type }) => key_type === 'client')?.last_used_at
    }
    harness.setTime('2026-11-21T10:00:00Z')
    expect(await used()).toBe('2026-11-21T10:00:00.000Z')
    harness.advance(59)
    expect(await used()).toBe('2026-11-21T10:00:00.000Z')
    harness.advance(2)
    expect(await used()).toBe('2026-11-21T10:01:01.000Z')
  })

  test('of a deleted project do not work', async () => {
    const project = await harness.project()
    expect((await project.app.get('/client/auth/jwks')).status).toBe(200)
    await harness.control('update app.projects set deleted_at = now() where id = $1', [project.id])
    projectCache.clear()
    expectRefusal(await project.app.get('/client/auth/jwks'), 401, 'UNAUTHORIZED')
  })
})

describe('making the database', () => {
  test('shows how far it has come, and calls wait for it', async () => {
    const { id, data, developer, status, signIn } = await unmade()
    expect((await status()).data).toEqual({
      status: 'provisioning',
      workflow_id: `provision-${id}`,
      current_step: null,
      steps: names.map((name) => ({ name, status: 'pending', started_at: null, finished_at: null })),
      attempt: 1,
      is_stalled: false,
      started_at: expect.stringMatching(time),
      completed_at: null,
      error: null,
    })
    expect(
      await harness.control(`select key from graphile_worker.jobs where key = $1`, [`provision ${id}`]),
    ).toHaveLength(1)
    const early = [await signIn(), await developer.get(`/admin/projects/${id}/webhooks`)]
    for (const answer of early) {
      expectRefusal(answer, 503, 'TENANT_UNAVAILABLE')
      expect(answer.headers.get('retry-after')).toBe('2')
    }
    const unknown = await harness.anyone.post(
      '/client/auth/anonymous',
      {},
      { 'x-api-key': `${data.api_keys.client.key}x` },
    )
    expectRefusal(unknown, 401, 'UNAUTHORIZED')

    await fleet.provision(id)
    expect((await signIn()).status).toBe(201)
    const ready = (await status()).data
    expect(ready).toMatchObject({ status: 'ready', current_step: null, attempt: 1, is_stalled: false, error: null })
    expect(ready.completed_at).toMatch(time)
    for (const step of ready.steps) {
      expect(step).toMatchObject({
        status: 'succeeded',
        started_at: expect.stringMatching(time),
        finished_at: expect.stringMatching(time),
      })
    }
  })

  test('the step that runs is the current one', async () => {
    const { tenant, status } = await unmade()
    await tenant(`steps = jsonb_set(jsonb_set(steps, '{0,status}', '"succeeded"'), '{1,status}', '"running"')`)
    expect((await status()).data.current_step).toBe('run_migrations')
  })

  test('cannot be started again while it runs or when it is done', async () => {
    const { id, reprovision } = await unmade()
    expectRefusal(await reprovision(), 409, 'ALREADY_RUNNING')
    expectRefusal(await reprovision({ workflow_id: `provision-${id}` }), 409, 'ALREADY_RUNNING')
    await fleet.provision(id)
    expectRefusal(await reprovision(), 409, 'ALREADY_PROVISIONED')
    expectRefusal(await reprovision({ workflow_id: 7 }), 400, 'INVALID_INPUT')
  })

  test('is stalled when no step moved for five minutes, and may be started again then', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const { id, status, reprovision } = await unmade()
    harness.setTime('2026-11-21T10:05:00Z')
    expect((await status()).data.is_stalled).toBe(false)
    expectRefusal(await reprovision(), 409, 'ALREADY_RUNNING')
    harness.setTime('2026-11-21T10:05:00.001Z')
    expect((await status()).data.is_stalled).toBe(true)
    const again = await reprovision()
    expect(again.status).toBe(202)
    expect(again.data).toEqual({ provisioning_status: 'provisioning', workflow_id: `provision-${id}`, attempt: 2 })
    expect((await status()).data).toMatchObject({ is_stalled: false, started_at: '2026-11-21T10:05:00.001Z' })
    expectRefusal(await reprovision(), 409, 'ALREADY_RUNNING')
  })

  test('is started again under the workflow id that is sent, and keeps it', async () => {
    const { tenant, status, reprovision } = await unmade()
    await tenant(`status = 'failed'`)
    expectRefusal(await reprovision({ workflow_id: '' }), 400, 'INVALID_INPUT')
    expectRefusal(await reprovision({ workflow_id: 'x'.repeat(201) }), 400, 'INVALID_INPUT')
    const again = await reprovision({ workflow_id: 'mine' })
    expect([again.status, again.data]).toEqual([
      202,
      { provisioning_status: 'provisioning', workflow_id: 'mine', attempt: 2 },
    ])
    expectRefusal(await reprovision({ workflow_id: 'mine' }), 409, 'ALREADY_RUNNING')
    await tenant(`status = 'failed'`)
    expect((await reprovision()).data).toMatchObject({ workflow_id: 'mine', attempt: 3 })
    expect((await status()).data).toMatchObject({ workflow_id: 'mine', attempt: 3 })
  })

  test('fails with an error that says the step, and goes on at that step', async () => {
    const { id, tenant, status, reprovision, signIn } = await unmade()
    const [{ cluster_id }] = await harness.control('select cluster_id from app.tenants where project_id = $1', [id])
    const done = {
      status: 'succeeded',
      started_at: '2026-11-21T10:00:00.000Z',
      finished_at: '2026-11-21T10:00:01.000Z',
    }
    await fleet.provision(id)
    // as if the last two steps had not been done
    await tenant(
      `status = 'provisioning', completed_at = null, cluster_id = $2,
       steps = (select jsonb_agg(case when n <= 3 then s || $3 else s || '{"status": "pending"}' end order by n)
                  from jsonb_array_elements(steps) with ordinality x (s, n))`,
      await unknownCluster(),
      JSON.stringify(done),
    )
    projectCache.clear()
    await fleet.provision(id)
    const failed = (await status()).data
    expect(failed).toMatchObject({ status: 'failed', is_stalled: false, completed_at: null, current_step: null })
    expect(failed.error).toEqual({ code: 'PROVISIONING_FAILED', message: expect.stringContaining('seed_defaults') })
    expect(failed.steps.map((step: { status: string }) => step.status)).toEqual([
      'succeeded',
      'succeeded',
      'succeeded',
      'failed',
      'pending',
    ])
    expectRefusal(await signIn(), 503, 'TENANT_UNAVAILABLE')

    await harness.control('delete from graphile_worker._private_jobs where key = $1', [`provision ${id}`])
    const answers = await Promise.all(Array.from({ length: 10 }, () => reprovision()))
    expect(answers.filter(({ status }) => status === 202).map(({ data }) => data.attempt)).toEqual([2])
    expect(answers.filter(({ error }) => error?.code === 'ALREADY_RUNNING')).toHaveLength(9)
    expect(
      await harness.control(`select key from graphile_worker.jobs where key = $1`, [`provision ${id}`]),
    ).toHaveLength(1)
    const restarted = (await status()).data
    expect(restarted).toMatchObject({ status: 'provisioning', error: null })
    expect(restarted.steps.slice(3)).toEqual(
      ['seed_defaults', 'verify'].map((name) => ({ name, status: 'pending', started_at: null, finished_at: null })),
    )

    await tenant('cluster_id = $2', cluster_id)
    await fleet.provision(id)
    const ready = (await status()).data
    expect(ready).toMatchObject({ status: 'ready', attempt: 2, error: null })
    // what had succeeded was not done again
    for (const step of ready.steps.slice(0, 3)) expect(step).toMatchObject(done)
    for (const step of ready.steps.slice(3)) expect(step.status).toBe('succeeded')
    expect((await signIn()).status).toBe(201)
  })

  test.each([
    ['as it begins a step', false],
    ['as it ends', true],
  ])('of a worker that stalled and comes back in a later attempt writes nothing to it: %s', async (_when, isDone) => {
    const { id, tenant, status } = await unmade()
    if (isDone) {
      await fleet.provision(id)
      await tenant(`status = 'provisioning', completed_at = null`)
    }
    const before = (await status()).data
    // the earlier attempt waits for the row; the later one begins, and then the earlier one goes on
    await meetingBehind(
      harness.running.services.control.database,
      `update app.tenants set attempt = attempt + 1, moved_at = moved_at where project_id = '${id}'`,
      () => [fleet.provision(id)],
    )
    expect((await status()).data).toEqual({ ...before, attempt: 2 })
    // the one under way ends as ever
    await fleet.provision(id)
    expect((await status()).data).toMatchObject({ status: 'ready', attempt: 2 })
  })

  test('waits for room when every cluster is full, and two never take the last place together', async () => {
    const [{ count }] = (await harness.control('select count(*)::int as count from app.tenants')) as [{ count: number }]
    await harness.control(`update app.clusters set capacity = $1 where name = 'own'`, [count + 1])
    try {
      const makers = await Promise.all(Array.from({ length: 3 }, () => harness.developer()))
      const made = await meetingBehind(
        harness.running.services.control.database,
        'lock table app.tenants in share mode',
        () => makers.map((by) => by.post('/admin/projects', { name: 'crowded' })),
      )
      const states = made.map(({ data }) => data.provisioning_status).sort()
      expect(states).toEqual(['failed', 'failed', 'provisioning'])
      const left = made.find(({ data }) => data.provisioning_status === 'failed')?.data.project.id
      const maker = makers[made.findIndex(({ data }) => data.project.id === left)]
      const status = await maker?.get(`/admin/projects/${left}/provisioning-status`)
      expect(status?.data.error).toEqual({
        code: 'NOT_STARTED',
        message: 'No cluster had free capacity. POST reprovision to try again.',
      })
    } finally {
      await harness.control(`update app.clusters set capacity = 500 where name = 'own'`)
    }
  })

  test('waits for room when every cluster is closed', async () => {
    await harness.control('update app.clusters set is_open = false')
    const { id, developer, data, status, reprovision, signIn } = await unmade()
    try {
      expect(data.provisioning_status).toBe('failed')
      expect((await status()).data).toMatchObject({
        status: 'failed',
        workflow_id: null,
        attempt: 0,
        started_at: null,
        error: { code: 'NOT_STARTED', message: expect.any(String) },
      })
      expectRefusal(await signIn(), 503, 'TENANT_UNAVAILABLE')
      const full = await reprovision()
      expectRefusal(full, 503, 'TENANT_UNAVAILABLE')
      expect(full.headers.get('retry-after')).toBe('60')
    } finally {
      await harness.control(`update app.clusters set is_open = true where name = 'own'`)
    }
    // the id in capitals names the same project, and the same database
    const path = `/admin/projects/${id.toUpperCase()}/reprovision`
    const answers = await Promise.all(Array.from({ length: 5 }, () => developer.post(path)))
    const [{ database_name }] = await harness.control('select database_name from app.tenants where project_id = $1', [
      id,
    ])
    expect(database_name).toBe(`${harness.prefix}_${id.replaceAll('-', '')}`)
    expect(answers.filter(({ status }) => status === 202).map(({ data }) => data.attempt)).toEqual([1])
    expect(answers.filter(({ error }) => error?.code === 'ALREADY_RUNNING')).toHaveLength(4)
    await fleet.provision(id)
    expect((await signIn()).status).toBe(201)
  })
})
