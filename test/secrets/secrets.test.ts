import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSecrets, scramVerifier } from '#server/secrets.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const key = (byte: number) => Buffer.alloc(32, byte).toString('base64')

test('what is sealed opens again under the same key and purpose, and nowhere else', () => {
  const [one, two] = [createSecrets(key(1)), createSecrets(key(2))]
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme' }).map((text) => text.toWellFormed()),
      (text) => {
        const sealed = one.encrypt('a purpose', text)
        expect(one.decrypt('a purpose', sealed)).toBe(text)
        expect(() => one.decrypt('another', sealed)).toThrow()
        expect(() => two.decrypt('a purpose', sealed)).toThrow()
        expect(one.encrypt('a purpose', text)).not.toBe(sealed)
      },
    ),
  )
})

test('a sealed text of which any character was changed does not open', () => {
  const secrets = createSecrets(key(1))
  const sealed = secrets.encrypt('p', 'the secret')
  let refused = 0
  for (let at = 0; at < sealed.length; at += 1) {
    const other = sealed[at] === 'A' ? 'B' : 'A'
    const changed = sealed.slice(0, at) + other + sealed.slice(at + 1)
    // the last character of a part may carry bits that decode to nothing
    let opened: string | null = null
    try {
      opened = secrets.decrypt('p', changed)
    } catch {
      refused += 1
      continue
    }
    expect(Buffer.from(changed.split('.').at(-1)!, 'base64url')).toEqual(
      Buffer.from(sealed.split('.').at(-1)!, 'base64url'),
    )
    expect(opened).toBe('the secret')
  }
  // one bit more or less in the last character of each of its parts
  expect(refused).toBeGreaterThanOrEqual(sealed.length - sealed.split('.').length)
})

test('a key that is not 32 bytes is refused', () => {
  for (const wrong of ['', 'x', Buffer.alloc(31).toString('base64'), Buffer.alloc(33).toString('base64')]) {
    expect(() => createSecrets(wrong)).toThrow(/32 bytes/)
  }
})

test('a verifier is what Postgres itself would store', async () => {
  const verifier = scramVerifier('some password')
  expect(verifier).toMatch(/^SCRAM-SHA-256\$4096:[A-Za-z0-9+/=]{24}\$[A-Za-z0-9+/=]{44}:[A-Za-z0-9+/=]{44}$/)
})

test('no secret stands in a database in the clear', async () => {
  const project = await harness.project()
  const webhook = await project.admin.post('/webhooks', { event_name: 'x', target_url: 'https://1.1.1.1/' })
  const config = { secret_api_key: 'sk_very_secret_value', webhook_secret: 'whsec_very_secret_value' }
  await project.admin.post('/integrations', { provider: 'revenuecat', config })
  const user = await project.user()
  const secrets = [
    webhook.data.secret,
    config.secret_api_key,
    config.webhook_secret,
    project.clientKey,
    project.serverKey,
  ]
  secrets.push(user.refreshToken, user.sessionToken, project.developer.refreshToken, 'a long passphrase', 'PRIVATE KEY')
  for (const run of [project.sql, harness.control]) {
    const tables = await run(
      `select c.oid::regclass::text as name from pg_class c
        where c.relnamespace::regnamespace::text in ('app', 'internal', 'graphile_worker') and c.relkind in ('r', 'p')`,
    )
    for (const { name } of tables) {
      const [row] = await run(`select coalesce(string_agg(t::text, e'\\n'), '') as text from ${name} t`)
      for (const secret of secrets)
        expect(row.text.includes(secret), `${name} holds ${secret.slice(0, 8)}…`).toBe(false)
    }
  }
})
