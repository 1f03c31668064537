import type pg from 'pg'
import { StartError } from '#server/errors.ts'
import { type Secrets, sealedBeginning } from '#server/secrets.ts'

/** The longest life of a token that a key signs: a refresh token of an end user. */
const longestTokenDays = 90

/** The NOTIFY message that the current key has changed. */
export const keysChanged = 'keys'

/** How the connection on which a process listens is named: with the keys that it has, the one that it writes with first. */
const listenerName = 'trellis_listen'

export type KeyRow = {
  readonly id: string
  readonly key_check: string
  readonly is_current: boolean
  readonly current_since: Date
  readonly replaced_at: Date | null
  readonly unused_at: Date | null
  readonly forgotten_at: Date | null
  /** Until when tokens that it has signed may live; null while it is current. */
  readonly tokens_until: Date | null
  /** Whether SECRETS_KEY may lack it. */
  readonly is_droppable: boolean
}

const rowsOf = async (control: pg.Client): Promise<KeyRow[]> => {
  const { rows } = await control.query<KeyRow>(
    `select k.*, k.replaced_at + make_interval(days => $1) as tokens_until,
            k.unused_at is not null and (k.forgotten_at is not null or k.replaced_at + make_interval(days => $1) <= now()) as is_droppable
       from app.secret_keys k order by k.current_since desc`,
    [longestTokenDays],
  )
  return rows
}

const wrongKey = 'SECRETS_KEY is not the one that this data was made with. Put the former key back.'

/**
 * Refuses keys that are not those of the data, and makes the current one current in this process. `control` acts as the owner; its tables may
 * be of a former release.
 */
export const checkKeys = async (control: pg.Client, secrets: Secrets): Promise<void> => {
  const { rows: found } = await control.query<{ installed: boolean; listed: boolean }>(
    `select to_regclass('app.installation') is not null as installed, to_regclass('app.secret_keys') is not null as listed`,
  )
  const keys = found[0]?.listed ? await rowsOf(control) : []
  const holds = ({ id, key_check }: KeyRow) => secrets.keyIds.includes(id) && secrets.checkOf(id) === key_check
  if (keys.length > 0) {
    const missing = keys.filter((key) => !key.is_droppable && !holds(key))
    const [lost] = missing
    if (lost) {
      if (!keys.some(holds)) throw new StartError(wrongKey)
      if (lost.is_current)
        throw new StartError(
          `SECRETS_KEY lacks the key ${lost.id}, which is current: everything new is encrypted under it. Put it back.`,
        )
      throw new StartError(
        `SECRETS_KEY lacks the key ${lost.id} too early. Still under it: ${(await usesOf(control, lost)).join('; ')}. Put it back behind the others, and see: npm run admin -- keys status`,
      )
    }
    const current = keys.find((key) => key.is_current)
    if (current) secrets.use(current.id)
    return
  }
  if (!found[0]?.installed) return
  const { rows } = await control.query<{ key_check: string }>('select key_check from app.installation')
  if (!rows[0]) return
  const first = secrets.keyIds.find((id) => secrets.checkOf(id) === rows[0]?.key_check)
  if (!first) throw new StartError(wrongKey)
  secrets.use(first)
}

/** Notes the current key of an installation that has none yet. */
export const storeKeys = async (control: pg.Client, secrets: Secrets): Promise<void> => {
  const check = secrets.checkOf(secrets.current)
  await control.query('insert into app.installation (key_check) values ($1) on conflict (only_one) do nothing', [check])
  await control.query(
    `insert into app.secret_keys (id, key_check, is_current)
     select $1, $2, true where not exists (select from app.secret_keys)`,
    [secrets.current, check],
  )
}

/** What still uses a key that is not current: phrases for people. */
export const usesOf = async (control: pg.Client, key: KeyRow): Promise<string[]> => {
  const uses: string[] = []
  if (key.unused_at === null) {
    const { rows } = await control.query<{ name: string; project: string | null; remaining: number | null }>(
      `select d.name, d.project, case when r.key_id = (select k.id from app.secret_keys k where k.is_current) then r.remaining end as remaining
         from (select 'control' as name, null as project
               union all
               select t.database_name, t.project_id::text from app.tenants t where t.status = 'ready') d
         left join app.secret_reseals r on r.database_name = d.name
        where r.database_name is null or r.remaining > 0 or r.error is not null
           or r.key_id <> (select k.id from app.secret_keys k where k.is_current)
        order by 1 limit 6`,
    )
    for (const { project, remaining } of rows.slice(0, 5)) {
      const place = project === null ? 'control' : `project ${project}`
      uses.push(
        remaining === null || remaining === 0
          ? `${place}, not encrypted again yet`
          : `${place}, ${remaining} stored texts`,
      )
    }
    if (rows.length > 5) uses.push('further projects')
    if (rows.length === 0)
      uses.push('what server processes wrote before they learned of the new key, until the next pass')
  }
  if (key.tokens_until && key.forgotten_at === null && key.tokens_until.getTime() > Date.now())
    uses.push(`sign-ins that were last renewed under it, until ${key.tokens_until.toISOString().slice(0, 10)}`)
  return uses
}

type Listener = { readonly pid: number; readonly keys: readonly string[] }

const listenersOf = async (control: pg.Client): Promise<Listener[]> => {
  const { rows } = await control.query<{ pid: number; name: string }>(
    `select pid, application_name as name from pg_catalog.pg_stat_activity
      where datname = current_database() and application_name like $1`,
    [`${listenerName}%`],
  )
  return rows.map(({ pid, name }) => ({ pid, keys: name.slice(listenerName.length).trim().split(',') }))
}

/** Takes over the current key, on the connection on which this process listens; there others see which keys it has. False: it lacks that key. */
export const followKey = async (listening: pg.Client, secrets: Secrets): Promise<boolean> => {
  const { rows } = await listening.query<{ id: string }>('select id from app.secret_keys where is_current')
  const isKnown = rows[0] === undefined || secrets.use(rows[0].id)
  const order = [secrets.current, ...secrets.keyIds.filter((id) => id !== secrets.current)]
  await listening.query(`select set_config('application_name', $1, false)`, [`${listenerName} ${order.join(',')}`])
  return isKnown
}

/** Makes the newest key current in control. Refused while a server process lacks it. Answers whether anything has changed. */
export const rotateKey = async (control: pg.Client, secrets: Secrets): Promise<boolean> => {
  const [newest = ''] = secrets.keyIds
  const lacking = (await listenersOf(control)).filter(({ keys }) => !keys.includes(newest))
  if (lacking.length > 0)
    throw new StartError(
      `${lacking.length} of the processes that run lack the key ${newest}: put it first in the SECRETS_KEY of each, keep the former behind it, and start them again, one after another.`,
    )
  const { rowCount } = await control.query('select from app.secret_keys where is_current and id = $1', [newest])
  if (rowCount === 1) {
    secrets.use(newest)
    return false
  }
  await control.query('begin')
  await control.query('update app.secret_keys set is_current = false, replaced_at = now() where is_current')
  await control.query(
    `insert into app.secret_keys (id, key_check, is_current, current_since) values ($1, $2, true, now())
     on conflict (id) do update
        set is_current = true, current_since = now(), replaced_at = null, unused_at = null, forgotten_at = null`,
    [newest, secrets.checkOf(newest)],
  )
  // a key that is current again has to be looked for anew
  await control.query('update app.secret_keys set unused_at = null where not is_current and forgotten_at is null')
  await control.query('commit')
  secrets.use(newest)
  return true
}

/** Gives up the tokens that a key has signed, so that it may be dropped before they have expired. */
export const forgetKey = async (control: pg.Client, id: string): Promise<KeyRow> => {
  const key = (await rowsOf(control)).find((row) => row.id === id)
  if (!key) throw new StartError(`There is no key ${id}: npm run admin -- keys status`)
  if (key.is_current) throw new StartError(`The key ${id} is current: put a new one before it, and rotate.`)
  if (key.unused_at === null)
    throw new StartError(`The key ${id} is in use: ${(await usesOf(control, key)).join('; ')}.`)
  await control.query('update app.secret_keys set forgotten_at = coalesce(forgotten_at, now()) where id = $1', [id])
  return key
}

export type KeysStatus = {
  readonly keys: readonly (KeyRow & { readonly uses: readonly string[] })[]
  readonly databases: number
  readonly done: number
  readonly resealed: number
  readonly failed: readonly { readonly database_name: string; readonly error: string }[]
}

export const keysStatus = async (control: pg.Client): Promise<KeysStatus> => {
  const keys = await rowsOf(control)
  const current = keys.find((key) => key.is_current)?.id ?? ''
  const { rows } = await control.query<{ databases: number; done: number; resealed: number }>(
    `select count(*)::int as databases,
            count(*) filter (where r.key_id = $1 and r.remaining = 0 and r.error is null)::int as done,
            coalesce(sum(r.resealed) filter (where r.key_id = $1), 0)::int as resealed
       from (select 'control' as name union all select t.database_name from app.tenants t where t.status = 'ready') d
       left join app.secret_reseals r on r.database_name = d.name`,
    [current],
  )
  const { rows: failed } = await control.query<{ database_name: string; error: string }>(
    'select database_name, error from app.secret_reseals where error is not null order by 1 limit 20',
  )
  const told = []
  for (const key of keys) told.push({ ...key, uses: key.is_current ? [] : await usesOf(control, key) })
  return { keys: told, ...rows[0]!, failed }
}

/** Every column that holds what was encrypted with SECRETS_KEY and stays: what is bound to it is made of the row. */
export type SealedColumn = {
  readonly table: string
  readonly column: string
  readonly purpose: (row: Readonly<Record<string, string>>, projectId: string) => string
  /** Columns that the purpose is made of, and the primary key. */
  readonly of: readonly string[]
  readonly key: string
  /** The table notes the key of each row. */
  readonly hasKeyId?: boolean
}

/** Both kinds of database have webhooks. */
const webhookSecrets: SealedColumn = {
  table: 'webhook_secrets',
  column: 'secret_sealed',
  key: 'id',
  of: [],
  purpose: () => 'webhook secret',
}

export const sealedColumns: Readonly<Record<'control' | 'tenant', readonly SealedColumn[]>> = {
  control: [
    { table: 'clusters', column: 'dsn_sealed', key: 'id', of: [], purpose: () => 'cluster dsn' },
    {
      table: 'project_signing_keys',
      column: 'sealed',
      key: 'key_id',
      of: ['project_id'],
      purpose: ({ project_id }) => `signing key ${project_id}`,
    },
    {
      table: 'domains',
      column: 'dkim_sealed',
      key: 'id',
      of: ['project_id', 'domain'],
      purpose: ({ project_id, domain }) => `dkim ${project_id} ${domain}`,
    },
    webhookSecrets,
  ],
  tenant: [
    {
      table: 'integrations',
      column: 'config_sealed',
      key: 'id',
      of: ['provider'],
      hasKeyId: true,
      purpose: ({ provider }, projectId) => `integration ${projectId} ${provider}`,
    },
    webhookSecrets,
    {
      table: 'ai_providers',
      column: 'api_key_sealed',
      key: 'id',
      of: ['name'],
      hasKeyId: true,
      purpose: ({ name }, projectId) => `ai provider ${projectId} ${name}`,
    },
    {
      table: 'oauth_providers',
      column: 'secret_sealed',
      key: 'id',
      of: ['name'],
      hasKeyId: true,
      purpose: ({ name }, projectId) => `oauth provider ${projectId} ${name}`,
    },
  ],
}

/** Sealed texts that live for minutes, until they are sent: they are waited for. */
const passing: Readonly<Record<'control' | 'tenant', string | null>> = {
  control: null,
  tenant: `select count(*)::int as remaining from app.user_codes where sealed is not null and expires_at > now() and not starts_with(sealed, $1)`,
}

const batch = 100

export type Resealed = { readonly resealed: number; readonly remaining: number }

/**
 * Encrypts again what one database holds under other keys than the current one, some rows at a time; each row is one statement that changes
 * it only if it is what was read, so that it may stop, or run twice, at any point. A text that no key opens is counted as remaining.
 */
export const resealDatabase = async (
  client: pg.Client,
  kind: 'control' | 'tenant',
  projectId: string,
  secrets: Secrets,
  isWanted: () => boolean = () => true,
): Promise<Resealed> => {
  const beginning = sealedBeginning(secrets.current)
  let resealed = 0
  let remaining = 0
  for (const { table, column, key, of, purpose, hasKeyId } of sealedColumns[kind]) {
    const read = [...new Set([key, ...of])].map((name) => `${name}::text as ${name}`).join(', ')
    const keyed = hasKeyId ? ', key_id = $4' : ''
    let after = ''
    while (isWanted()) {
      const { rows } = await client.query<Record<string, string> & { sealed_text: string }>(
        `select ${read}, ${column} as sealed_text from app.${table}
          where ${key}::text > $1 and ${column} is not null and not starts_with(${column}, $2) order by ${key}::text limit ${batch}`,
        [after, beginning],
      )
      for (const row of rows) {
        after = row[key] ?? ''
        let plain: string
        try {
          plain = secrets.decrypt(purpose(row, projectId), row.sealed_text)
        } catch {
          remaining += 1
          continue
        }
        const sealed = secrets.encrypt(purpose(row, projectId), plain)
        const values = [after, row.sealed_text, sealed, ...(hasKeyId ? [secrets.current] : [])]
        const { rowCount } = await client.query(
          `update app.${table} set ${column} = $3${keyed} where ${key}::text = $1 and ${column} = $2`,
          values,
        )
        // someone else has just written it: the next pass looks again
        if (rowCount === 1) resealed += 1
        else remaining += 1
      }
      if (rows.length < batch) break
    }
  }
  const waiting = passing[kind]
  if (waiting) {
    const { rows } = await client.query<{ remaining: number }>(waiting, [beginning])
    remaining += rows[0]?.remaining ?? 0
  }
  return { resealed, remaining: isWanted() ? remaining : remaining + 1 }
}

/** How long after a rotation what a process had encrypted before may still reach a table: longer than a request. */
const settleSeconds = 60

/**
 * Marks the keys that nothing is encrypted under: every process writes with the current key, and after that, and after the longest request,
 * a pass has gone through every database and found nothing. Answers how many were marked.
 */
export const noteUnused = async (control: pg.Client): Promise<number> => {
  const { rows } = await control.query<{ id: string }>('select id from app.secret_keys where is_current')
  const current = rows[0]?.id
  if (!current || (await listenersOf(control)).some(({ keys }) => keys[0] !== current)) return 0
  const { rowCount } = await control.query(
    `update app.secret_keys k set unused_at = now()
      where not k.is_current and k.unused_at is null
        and not exists (
          select from (select 'control' as name union all select t.database_name from app.tenants t where t.status = 'ready') d
            left join app.secret_reseals r on r.database_name = d.name
           where r.database_name is null or r.remaining > 0 or r.error is not null or r.key_id <> $1
              or r.began_at < (select c.current_since from app.secret_keys c where c.is_current) + make_interval(secs => $2))`,
    [current, settleSeconds],
  )
  return rowCount ?? 0
}

/** Whether some key may still be in use beside the current one. */
export const isRotating = async (control: pg.Client): Promise<boolean> => {
  const { rowCount } = await control.query(
    'select from app.secret_keys where not is_current and unused_at is null limit 1',
  )
  return (rowCount ?? 0) > 0
}

/** Databases that the last pass has not gone through since the time after the rotation, oldest first. */
export const databasesToReseal = async (control: pg.Client) => {
  const { rows } = await control.query<{ database_name: string; project_id: string | null; cluster_id: string | null }>(
    `select d.* from (select 'control' as database_name, null::uuid as project_id, null::uuid as cluster_id
                      union all select t.database_name, t.project_id, t.cluster_id from app.tenants t where t.status = 'ready') d
       left join app.secret_reseals r on r.database_name = d.database_name
      cross join (select k.id, k.current_since from app.secret_keys k where k.is_current) c
      where r.database_name is null or r.key_id <> c.id or r.remaining > 0 or r.error is not null
         or r.began_at < c.current_since + make_interval(secs => $1)
      order by r.checked_at nulls first, d.database_name`,
    [settleSeconds],
  )
  return rows
}

export const noteResealed = (
  control: pg.Client,
  database: string,
  keyId: string,
  { resealed, remaining }: Resealed,
  beganAt: Date,
  error: string | null,
) =>
  control.query(
    `insert into app.secret_reseals as r (database_name, key_id, resealed, remaining, error, began_at, checked_at)
     values ($1, $2, $3, $4, $5, $6, now())
     on conflict (database_name) do update
        set key_id = excluded.key_id, remaining = excluded.remaining, error = excluded.error, began_at = excluded.began_at, checked_at = excluded.checked_at,
            resealed = excluded.resealed + case when r.key_id = excluded.key_id then r.resealed else 0 end`,
    [database, keyId, resealed, remaining, error, beganAt],
  )
