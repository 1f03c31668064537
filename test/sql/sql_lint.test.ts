import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { readProgram } from '#fleet/load/files.ts'
import { controlName } from '#server/database/names.ts'
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
})

/** "grant a, b on function f, g to x, y" as one line for each privilege. */
const privilegesOf = (text: string): string[] => {
  const listed = (list = '') => list.split(/,(?![^(]*\))/).map((item) => item.replaceAll(/\s+/g, ' ').trim())
  const statements = text
    .replaceAll(/--.*/g, '')
    .matchAll(/\bgrant\s+([^;]+?)\s+on\s+(?:function\s+|table\s+)?([^;]+?)\s+to\s+([^;]+);/g)
  return [...statements].flatMap(([, privileges, objects, roles]) =>
    listed(privileges).flatMap((privilege) => {
      const columns = listed(/\((.*)\)/s.exec(privilege)?.[1])
      return columns.flatMap((column) =>
        listed(objects).flatMap((object) =>
          listed(roles).map((role) => `${privilege.replace(/ ?\(.*/s, '')} (${column}) on ${object} to ${role}`),
        ),
      )
    }),
  )
}

test('what a policy file grants is what it says', () => {
  expect(privilegesOf('grant select, update (a, b) on app.t to x, y; -- grant all on app.t to z;')).toEqual([
    ...['select () on app.t to x', 'select () on app.t to y', 'update (a) on app.t to x', 'update (a) on app.t to y'],
    ...['update (b) on app.t to x', 'update (b) on app.t to y'],
  ])
})

// the loader takes back what a file no longer grants: a second file that grants it too would lose it
test.each(['control', 'tenant'] as const)('no privilege is granted by two policy files: %s', async (kind) => {
  const givers = new Map<string, string>()
  const twice: string[] = []
  for (const { path, text } of (await readProgram(kind)).policies)
    for (const privilege of privilegesOf(text)) {
      const first = givers.get(privilege) ?? path
      if (first !== path) twice.push(`${privilege}: ${first}, ${path}`)
      givers.set(privilege, first)
    }
  expect(givers.size).toBeGreaterThan(kind === 'tenant' ? 800 : 100)
  expect(twice).toEqual([])
})
