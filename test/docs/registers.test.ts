import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { lockProblems, registerProblems, sqlstateProblems } from '../../scripts/registers.ts'

const file = 'functions/tenant/x.sql'
const locks = { file: 'sql/shared/45_locks.sql', text: "when 'x' then 7305441001" }

test('what the program uses is registered', async () => {
  expect(await registerProblems()).toEqual([])
})

test.each([
  ["raise exception using errcode = 'TRDRY';", [`${file}:2: SQLSTATE TRDRY is not in server/database/sqlstates.ts`]],
  ["exception when sqlstate 'TR009' then", [`${file}:2: SQLSTATE TR009 is not in server/database/sqlstates.ts`]],
  ["if state = '23P01' then", [`${file}:2: SQLSTATE 23P01 is not in server/database/sqlstates.ts`]],
  [
    "using errcode = 'unique_violation';",
    [`${file}:2: SQLSTATE unique_violation is not in server/database/sqlstates.ts`],
  ],
  ["using errcode = 'serialization_failure'; -- 'TR009'", []],
  ["kind = 'TRIAL' and code = '10000'", []],
])('a SQLSTATE is one of the register: %s', (line, problems) => {
  const text = `-- '40001'\n${line}\nexception when sqlstate '40001' then`
  expect(sqlstateProblems([{ file, text }], { '40001': 'serialization_failure: again' })).toEqual(problems)
})

test('a SQLSTATE of the register is used', () => {
  expect(sqlstateProblems([], { TR001: 'x' })).toEqual(['server/database/sqlstates.ts: nothing uses TR001'])
})

test.each([
  ['perform pg_advisory_xact_lock(7305441001);', []],
  [
    'perform pg_advisory_xact_lock(7305441999);',
    [`${file}:1: the advisory lock 7305441999 is not in sql/shared/45_locks.sql or fleet/locks.ts`],
  ],
  [
    'perform pg_try_advisory_xact_lock(5);',
    [`${file}:1: take an advisory lock by its name, with internal.advisory_lock`],
  ],
])('an advisory lock is one of the register: %s', (text, problems) => {
  expect(lockProblems([locks, { file, text }])).toEqual(problems)
})

test('a number is one lock', () => {
  const session = { file: 'fleet/locks.ts', text: "numberedLock('x', 7_305_441_001)" }
  expect(lockProblems([locks, session])).toEqual([
    'fleet/locks.ts:1: the advisory lock 7305441001 is also at sql/shared/45_locks.sql:1',
  ])
})

test('a name that is not registered is refused, and a lock is held to the end of the transaction', async () => {
  const harness = await startHarness()
  const { sql } = await harness.project()
  for (const call of [
    "advisory_lock('x')",
    "try_advisory_lock('x')",
    "advisory_lock('x', 'y')",
    "try_advisory_lock('address', null)",
  ])
    await expect(sql(`select internal.${call}`)).rejects.toThrow('no advisory lock is registered')
  const held = "select count(*)::int as n from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
  expect(
    await sql(`with l as materialized (select internal.advisory_lock('catalog'), internal.advisory_lock('address', 'email a'),
                                                   internal.try_advisory_lock('audit seal') as taken)
                    select l.taken, (${held}) as held from l`),
  ).toEqual([{ taken: true, held: 3 }])
  expect(await sql(held)).toEqual([{ n: 0 }])
})
