import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { controlName } from '#server/database/prepare.ts'
import { startHarness } from '#test/support/harness.ts'
import { type Rule, rules } from '#test/support/lint.ts'

const harness = await startHarness()
const project = await harness.project()
const databases = { control: controlName(harness.prefix), tenant: project.database }

const connect = async (kind: keyof typeof databases) => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${databases[kind]}`
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  return client
}

describe.each(['control', 'tenant'] as const)('%s', (kind) => {
  let client: pg.Client
  beforeAll(async () => {
    client = await connect(kind)
  })
  afterAll(() => client.end())

  const offenders = async (rule: Rule) => {
    const { rows } = await client.query<{ offender: string }>(rule.find)
    return rows.map((row) => row.offender)
  }
  const applicable = rules.filter((rule) => (rule.only ?? kind) === kind)

  test.each(applicable)('$name', async (rule) => {
    // the title is cut short: the whole rule stands in CONTRIBUTING, with what to do
    expect(await offenders(rule), rule.name).toEqual([])
  })

  test.each(applicable)('caught: $name', async (rule) => {
    await client.query('begin')
    try {
      await client.query('create role login_lint')
      await client.query(`set local role trellis_owner`)
      await client.query(rule.bad.startsWith('create role') ? `reset role; ${rule.bad}` : rule.bad)
      expect((await offenders(rule)).length).toBeGreaterThan(0)
    } finally {
      await client.query('rollback')
    }
  })

  test('every function that is checked late is right: its SQL parses against the tables that are there', async () => {
    const { rows } = await client.query<{ name: string; definition: string }>(
      `select p.oid::regprocedure::text as name, pg_get_functiondef(p.oid) as definition
         from pg_proc p join pg_language l on l.oid = p.prolang
        where p.pronamespace::regnamespace::text in ('api', 'internal') and l.lanname in ('sql', 'plpgsql')`,
    )
    const wrong: string[] = []
    await client.query('begin')
    await client.query(`set local check_function_bodies = on; set local search_path = ''`)
    for (const { name, definition } of rows) {
      await client.query('savepoint one')
      await client.query(definition).catch((error: Error) => wrong.push(`${name}: ${error.message}`))
      await client.query('rollback to savepoint one')
    }
    await client.query('rollback')
    expect(wrong).toEqual([])
  })
})
