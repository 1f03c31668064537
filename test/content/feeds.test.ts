import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { contentOf, segmentOf } from '#test/support/content.ts'
import { dataFor } from '#test/support/graphql.ts'
import { openSocketOf } from '#test/support/realtime.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { openTransaction } from '#test/support/transaction.ts'
import { startWebhooks } from '#test/support/webhooks.ts'
import { loadTasks } from '#workers/task.ts'

const { start, harness, project, receiver, watch } = await startWebhooks()
const { admin } = project
const { create, save, publish, unpublish, get, clear } = contentOf(project)
const user = await project.user()
const later = '2026-12-01T11:00:00.000Z'
afterEach(clear)

const told = async () => {
  await project.drain()
  return receiver.requests.splice(0).map(({ body }) => JSON.parse(String(body)))
}

describe('svc.content.published', () => {
  test('has no user, and comes once for each publication', async () => {
    await watch({ event_name: 'svc.content.published' })
    const { id } = await create('e')
    await publish('e')
    await publish('e')
    const [body, ...more] = await told()
    expect(more).toEqual([])
    expect(body).toMatchObject({ type: 'svc.content.published', project_id: project.id })
    expect(body.data).toMatchObject({
      user: null,
      event: {
        event_name: 'svc.content.published',
        properties: { entry_id: id, key: 'e', content_type: 'article', locale: 'en', version: 1 },
        occurred_at: start,
        source: 'system',
      },
    })
    // a save, a schedule and a withdrawal are none
    await save('e', 'en', {})
    await publish('e', 'en', { publish_at: later })
    await unpublish('e')
    await unpublish('e')
    expect(await told()).toEqual([])
    await publish('e')
    expect((await told()).map(({ data }) => data.event.properties.version)).toEqual([2])
  })

  test('of a schedule comes at its time, once, and not when it was cancelled or moved', async () => {
    await watch({ event_name: 'svc.content.published', filter: { column: 'content_type', op: 'eq', value: 'article' } })
    for (const key of ['kept', 'cancelled', 'moved', 'written', 'deleted']) {
      await create(key)
      await publish(key, 'en', { publish_at: later })
    }
    await create('page', {}, { content_type: 'page' })
    await publish('page', 'en', { publish_at: later })
    await unpublish('cancelled')
    await publish('moved', 'en', { publish_at: '2026-12-01T12:00:00Z' })
    expect(await told()).toEqual([])
    harness.setTime(later)
    // what is written before a worker comes tells of the publication, which has been
    await admin.patch('/content/written', { sort_order: 1 })
    await admin.delete('/content/deleted')
    const events = (await told()).map(({ data }) => data.event)
    expect(events.map(({ properties }) => properties.key).sort()).toEqual(['deleted', 'kept', 'written'])
    expect(new Set(events.map(({ occurred_at }) => occurred_at))).toEqual(new Set([later]))
    expect(await told()).toEqual([])
    harness.setTime('2026-12-01T12:00:00Z')
    expect((await told()).map(({ data }) => data.event.properties.key)).toEqual(['moved'])
    // the job of a time that is due twice says nothing
    await project.sql(`select internal.enqueue('content__publish')`)
    expect(await told()).toEqual([])
  })

  test('of a schedule is sent within ten seconds of its time, by the job that the schedule makes', async () => {
    const { services } = harness.running
    const drains = async () => {
      await services.waker.flush()
      const jobs = await harness.control('select key, run_at from graphile_worker.jobs where key like $1 order by 1', [
        `${project.id}:%`,
      ])
      return jobs.map(({ key, run_at }) => [key.split(':').at(-1), run_at.toISOString()])
    }
    const drain = async (at: string) => {
      harness.setTime(at)
      // what is on its way belongs to what was before
      await services.waker.flush()
      await harness.control('delete from graphile_worker._private_jobs')
      const { jobs } = await loadTasks()
      await jobs.find(({ name }) => name === 'tenant__drain')?.run(services, { project_id: project.id })
      return receiver.requests.splice(0).map(({ body }) => JSON.parse(String(body)).data.event.properties.key)
    }
    await watch({ event_name: 'svc.content.published' })
    for (const [key, publish_at] of [
      ['second', '2026-12-01T11:30:00.000Z'],
      ['first', later],
      ['third', '2026-12-01T12:00:00.000Z'],
    ] as const) {
      await create(key)
      await publish(key, 'en', { publish_at })
    }
    // one job a project: that of other work goes first, and is followed by one at the earliest time, and so on
    await project.drain()
    expect(await drain(start)).toEqual([])
    expect(await drains()).toEqual([['timer', later]])
    expect(await drain('2026-12-01T10:59:59.000Z')).toEqual([])
    expect(await drains()).toEqual([['timer', later]])
    expect(await drain(later)).toEqual(['first'])
    expect(await drains()).toEqual([['timer', '2026-12-01T11:30:00.000Z']])
    // a worker that is ten seconds late sends it at once
    expect(await drain('2026-12-01T11:30:10.000Z')).toEqual(['second'])
    expect(await drains()).toEqual([['timer', '2026-12-01T12:00:00.000Z']])
  })

  test('of a schedule whose entry is being written follows the others, and holds none of them up', async () => {
    await watch({ event_name: 'svc.content.published' })
    for (const key of ['held', 'free']) {
      await create(key)
      await publish(key, 'en', { publish_at: later })
    }
    const writing = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
    await writing.query(`select api.content_update('held', '{"sort_order": 1}')`)
    harness.setTime(later)
    const keys = async () => (await told()).map(({ data }) => data.event.properties.key)
    expect(await keys()).toEqual(['free'])
    await writing.commit()
    harness.setTime('2026-12-01T11:00:01Z')
    expect(await keys()).toEqual(['held'])
    expect(await keys()).toEqual([])
  })

  test('of an entry that cannot be settled holds up none of the others, and is tried again later each time', async () => {
    await watch({ event_name: 'svc.content.published' })
    for (const key of ['a', 'broken', 'c']) {
      await create(key)
      await publish(key, 'en', { publish_at: later })
    }
    await project.sql(`
      create function app.break_content() returns trigger language plpgsql as $$ begin raise 'It is broken.'; end $$;
      create trigger break_content before update on app.content_locales for each row
        when (new.published_version is not null and new.entry_id = '${(await get('broken')).id}')
        execute function app.break_content()`)
    onTestFinished(() => void project.sql('drop function if exists app.break_content cascade'))
    const keysAt = async (time: string) => {
      harness.setTime(time)
      return (await told()).map(({ data }) => data.event.properties.key)
    }
    const stuck = () => project.sql('select attempts, retry_at, reason from app.content_failures')
    expect((await keysAt(later)).sort()).toEqual(['a', 'c'])
    const [first] = await stuck()
    expect(first).toEqual({ attempts: 1, retry_at: new Date('2026-12-01T11:00:10Z'), reason: 'It is broken.' })
    // what is seen does not wait for it, nor does what is due meanwhile
    expect((await project.app.get('/client/content/broken')).status).toBe(200)
    await create('d')
    await publish('d', 'en', { publish_at: '2026-12-01T11:00:05.000Z' })
    expect(await keysAt('2026-12-01T11:00:05.000Z')).toEqual(['d'])
    expect(await stuck()).toMatchObject([{ attempts: 1 }])
    expect(await keysAt('2026-12-01T11:00:10.000Z')).toEqual([])
    expect(await stuck()).toMatchObject([{ attempts: 2, retry_at: new Date('2026-12-01T11:00:30Z') }])
    await project.sql('drop function app.break_content cascade')
    expect(await keysAt('2026-12-01T11:00:29.000Z')).toEqual([])
    expect(await keysAt('2026-12-01T11:00:31.000Z')).toEqual(['broken'])
    expect(await stuck()).toEqual([])
  })

  test('of a thousand schedules in one second is told of each', async () => {
    await watch({ event_name: 'svc.content.published' })
    await project.sql(`
      with made as (
        insert into app.content_entries (key, content_type, default_locale)
        select 'n' || n, 'article', 'en' from generate_series(1, 1000) n returning id
      ), placed as (
        insert into app.content_locales (entry_id, locale, scheduled_version, publish_at)
        select id, 'en', 1, '${later}' from made returning entry_id
      )
      insert into app.content_versions (entry_id, locale, version, fields, author)
      select entry_id, 'en', 1, '{}', '{"type": "system", "id": null}' from placed`)
    await project.sql(`select internal.enqueue('content__publish', due_at => '${later}')`)
    harness.setTime(later)
    const begun = performance.now()
    // to the end of the schedules alone: how fast a receiver is, is its own affair
    await project.sql('delete from app.webhook_deliveries')
    await project.drain()
    expect((performance.now() - begun) / 1000).toBeLessThan(60)
    const [{ n }] = await project.sql('select count(distinct event_id)::int as n from app.webhook_deliveries')
    expect(n).toBe(1000)
  })
})

test('content.changed on config: when what apps see changes, and only then', async () => {
  const soon = '2026-12-01T10:00:10.000Z'
  const socket = await openSocketOf(harness, user)
  expect(await socket.subscribe('config')).toMatchObject({ type: 'ack' })
  const none = async (step: () => Promise<unknown>) => {
    await step()
  }
  const one = async (step: () => Promise<unknown>, locale: string | null) => {
    await step()
    const frame = await socket.next({ event: 'content.changed' })
    expect(frame).toMatchObject({ channel: 'config', payload: { key: 'e', content_type: 'article', locale } })
  }
  await none(() => create('e'))
  await none(() => save('e', 'de', {}))
  // nobody sees it yet
  await none(() => admin.patch('/content/e', { sort_order: 1 }))
  await one(() => publish('e', 'de'), 'de')
  await none(() => publish('e', 'de'))
  await none(() => save('e', 'de', {}))
  await none(() => publish('e', 'en', { publish_at: soon }))
  await one(() => admin.patch('/content/e', { sort_order: 2 }), null)
  await none(() => admin.patch('/content/e', { sort_order: 2 }))
  harness.setTime(soon)
  await one(() => project.drain(), 'en')
  await one(() => unpublish('e', 'en'), 'en')
  await none(() => unpublish('e', 'en'))
  await none(() => publish('e', 'en', { publish_at: '2026-12-02T00:00:00Z' }))
  await none(() => unpublish('e', 'en'))
  await one(() => admin.delete('/content/e'), null)
  await none(() => create('e'))
  await none(() => admin.delete('/content/e'))
  // each event was taken as it came: a further one would be among the frames
  expect(socket.frames.filter(({ event }) => event === 'content.changed')).toHaveLength(5)
})

test('a segment that an entry names cannot be deleted', async () => {
  const segment_id = await segmentOf(project)
  await create('e', {}, { segment_id })
  const refused = await admin.delete(`/segments/${segment_id}`)
  expectRefusal(refused, 409, 'SEGMENT_IN_USE', { used_by: ['content e'] })
  await admin.patch('/content/e', { segment_id: null })
  expect((await admin.delete(`/segments/${segment_id}`)).status).toBe(200)
})

test('GraphQL shows entries, languages and versions', async () => {
  await project.developer.patch(`/admin/projects/${project.id}`, { graphql_enabled: true })
  await create('e', { title: 'Hi' })
  const data = await dataFor(
    project,
    '{ contentEntries { nodes { key } } contentVersions { nodes { version fields } } contentLocales { nodes { locale } } }',
  )
  expect(data).toMatchObject({
    contentEntries: { nodes: [{ key: 'e' }] },
    contentVersions: { nodes: [{ version: 1 }] },
    contentLocales: { nodes: [{ locale: 'en' }] },
  })
})
