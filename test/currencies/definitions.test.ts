import { afterEach, describe, expect, test } from 'vitest'
import { createEconomy } from '#test/support/currencies.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Defining currencies: their fields, changes of their rules, and deletion. */
const harness = await startHarness()
const { project, currency, someone, give, spend, ledger } = await createEconomy(harness)
afterEach(() => harness.setTime(null))

const define = (body: unknown) => project.admin.post('/currencies', body)
const reverse = (id: string, headers?: Record<string, string>) =>
  project.admin.post(`/currencies/transactions/${id}/reverse`, {}, headers)

describe('a definition', () => {
  test('has these defaults, is listed, read, changed and deleted', async () => {
    const made = await define({ code: 'GEMS', name: 'Gems' })
    expect(made.status).toBe(201)
    expect(made.data).toEqual({
      id: expect.any(String),
      code: 'GEMS',
      name: 'Gems',
      icon_url: null,
      initial_grant: 0,
      max_balance: 2_000_000_000,
      client_spendable: false,
      regen: null,
      expiry_days: null,
      is_active: true,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    expect((await project.admin.get('/currencies/GEMS')).data).toEqual(made.data)
    const list = await project.admin.get('/currencies?limit=1')
    expect([list.data[0].code, list.body.limit, list.body.offset]).toEqual(['GEMS', 1, 0])
    const regen = { amount: 1, every_seconds: 60, cap: 5 }
    const changed = await project.admin.patch('/currencies/GEMS', { code: 'OTHER', regen, expiry_days: 3, odd: 1 })
    expect(changed.data).toMatchObject({ code: 'GEMS', regen, expiry_days: 3 })
    expect((await project.admin.patch('/currencies/GEMS', {})).data).toEqual(changed.data)
    expect((await project.admin.patch('/currencies/GEMS', { regen: null, expiry_days: null })).data).toMatchObject({
      regen: null,
      expiry_days: null,
    })
    expect((await project.admin.delete('/currencies/GEMS')).data).toEqual({ deleted: true })
    expectRefusal(await project.admin.get('/currencies/GEMS'), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.delete('/currencies/GEMS'), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.patch('/currencies/GEMS', {}), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.get('/currencies/GEMS/stats'), 404, 'NOT_FOUND')
  })

  test.each([
    ['code', 'A'],
    ['code', 'gems'],
    ['code', `A${'B'.repeat(16)}`],
    ['code', '1A'],
    ['name', ''],
    ['name', 'x'.repeat(201)],
    ['icon_url', 'x'.repeat(2001)],
    ['initial_grant', -1],
    ['initial_grant', 2_000_000_001],
    ['initial_grant', 1.5],
    ['max_balance', 0],
    ['max_balance', 2 ** 53],
    ['client_spendable', 'yes'],
    ['expiry_days', 0],
    ['expiry_days', 3651],
    ['is_active', null],
    ['regen.cap', 0, { amount: 1, every_seconds: 1, cap: 0 }],
    ['regen.amount', 0, { amount: 0, every_seconds: 1, cap: 1 }],
    ['regen.every_seconds', 0, { amount: 1, every_seconds: 0, cap: 1 }],
    ['regen.every_seconds', 0, { amount: 1, cap: 1 }],
    ['regen.every_seconds', 0, { amount: 1, every_seconds: 31_536_001, cap: 1 }],
  ])('with %s of %s is refused', async (field, value, regen?: object) => {
    const body = { code: 'BADONE', name: 'Bad', ...(regen ? { regen } : { [field]: value }) }
    expectRefusal(await define(body), 400, 'VALIDATION_ERROR', { field })
    expectRefusal(await project.admin.get('/currencies/BADONE'), 404, 'NOT_FOUND')
  })

  test('whose parts do not fit together is refused, made or changed', async () => {
    const code = await currency({ max_balance: 100, initial_grant: 100 })
    expectRefusal(
      await define({ code: 'BADONE', name: 'x', max_balance: 5, initial_grant: 6 }),
      400,
      'VALIDATION_ERROR',
      {
        field: 'initial_grant',
      },
    )
    const path = `/currencies/${code}`
    expectRefusal(await project.admin.patch(path, { max_balance: 99 }), 400, 'VALIDATION_ERROR', {
      field: 'initial_grant',
    })
    const regen = { amount: 1, every_seconds: 1, cap: 101 }
    expectRefusal(await project.admin.patch(path, { regen }), 400, 'VALIDATION_ERROR', { field: 'regen' })
    expectRefusal(await project.admin.patch(path, { regen: 5 }), 400, 'VALIDATION_ERROR')
    expectRefusal(await project.admin.patch(path, '5'), 400, 'INVALID_BODY')
    expectRefusal(await define('[]'), 400, 'INVALID_BODY')
    expectRefusal(await project.admin.get('/currencies?limit=0'), 400, 'INVALID_INPUT')
  })

  test('of a code that is taken is refused, also when ten make it at once', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => define({ code: 'TWICE', name: 'x' })))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 201))
      expectRefusal(answer, 409, 'CONFLICT', { field: 'code' })
  })

  test('that users have a balance of cannot be deleted', async () => {
    const code = await currency()
    const { id, user } = await someone()
    await give(id, code, 1)
    expectRefusal(await project.admin.delete(`/currencies/${code}`), 409, 'CURRENCY_IN_USE')
    await spend(user, code, 1)
    expectRefusal(await project.admin.delete(`/currencies/${code}`), 409, 'CURRENCY_IN_USE')
    expect(await ledger(id, code)).toHaveLength(2)
  })

  test('is one of at most a hundred, also when several are made at once', async () => {
    const other = await harness.project()
    await other.sql(`insert into app.currencies (code, name) select 'C' || n, 'x' from generate_series(1, 98) n`)
    const answers = await Promise.all(
      ['A1', 'A2', 'A3', 'A4'].map((code) => other.admin.post('/currencies', { code, name: 'x' })),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(2)
    for (const answer of answers.filter(({ status }) => status !== 201))
      expectRefusal(answer, 409, 'LIMIT_REACHED', { limit: 100 })
  })

  test('and every change of value by an administrator is in the audit trail', async () => {
    const code = await currency()
    const { id } = await someone()
    const made = await give(id, code, 5)
    await reverse(made.id)
    const actions = (await project.admin.get('/audit?limit=10')).data ?? []
    const rows = actions.length
      ? actions
      : await project.sql(`select action, target_id from app.audit_events order by position desc limit 10`)
    expect(rows.map((row: { action: string }) => row.action)).toEqual(
      expect.arrayContaining(['currencies.create', 'currencies.adjust', 'currencies.reverse']),
    )
  })
})
