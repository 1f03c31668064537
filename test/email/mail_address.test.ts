import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addressProblem, canonicalAddress } from '#server/providers/mail_address.ts'
import { freshEmail, startHarness } from '#test/support/harness.ts'
import { personalOf } from '#test/support/organizations.ts'
import { sized } from '#test/support/sized.ts'

const harness = await startHarness()
const project = await harness.project()
const problemOf = (text: string) => addressProblem(canonicalAddress(text))

describe('a mail address', () => {
  test.each([
    ['  a@example.org ', 'a@example.org'],
    ['user@b\u00fccher.example', 'user@xn--bcher-kva.example'],
    ['user@bu\u0308cher.example', 'user@xn--bcher-kva.example'],
    ['user@\u4f8b\u3048.\u30c6\u30b9\u30c8', 'user@xn--r8jz45g.xn--zckzah'],
    ['user@B\u00dcCHER.Example', 'user@xn--bcher-kva.example'],
    ['cafe\u0301@example.org', 'caf\u00e9@example.org'],
    ["o'hara+tag.x_y-z@sub.example.co", "o'hara+tag.x_y-z@sub.example.co"],
  ])('%j is %j', (sent, kept) => {
    expect(canonicalAddress(sent)).toBe(kept)
    expect(problemOf(sent)).toBeNull()
  })

  test.each([
    ...[
      '',
      'a',
      'a@',
      '@example.org',
      'a@b',
      'a b@example.org',
      '.a@example.org',
      'a.@example.org',
      'a..b@example.org',
    ],
    ...[
      'a@xn--a.com',
      'a@exa_mple.org',
      'a@-example.org',
      'a@example..org',
      'a@\u017fexample.org',
      'a@\uff45xample.org',
      'a@\u4f8b\u3048\u3002\u30c6\u30b9\u30c8',
      'a@b\u00fccher.example/x',
      'a@b\u00fccher.example:25',
    ],
    ...[
      'a@b\u00fccher%2e.example',
      'ni\u212aki@example.org',
      'n\u0130kki@example.org',
      `${'a'.repeat(65)}@example.org`,
    ],
    ...[
      'a\u200bb@example.org',
      'a\u202eb@example.org',
      'a\u00adb@example.org',
      'a\u2060b@example.org',
      'a\ufeffb@example.org',
    ],
    ...[
      'a\ufe0fb@example.org',
      'a\u3164b@example.org',
      'a\u2066b@example.org',
      'a@b\u200b\u00fccher.example',
      'a\u00a0b@example.org',
    ],
  ])('%j is none', (sent) => expect(problemOf(sent)).not.toBeNull())

  test('is told what is wrong with it, where that cannot be seen', async () => {
    const { error } = await harness.anyone.post('/auth/developer/otp/request', { email: 'ab\u200bc@example.org' })
    expect(error).toMatchObject({
      code: 'INVALID_INPUT',
      details: { field: 'email', reason: 'must have no invisible characters' },
    })
  })

  test('that the server takes is one that the database takes, whatever it is made of', async () => {
    const words = fc.array(
      fc.oneof(
        fc.constantFrom('a', 'B', '.', '-', '+', '@', 'x.org', '\u00fc', 'u\u0308', '\u200b', '\ufe0f', '\u0130'),
        fc.string({ unit: 'grapheme' }),
      ),
      { maxLength: 6 },
    )
    const texts = fc.sample(words, sized(2000, 20_000)).map((parts) => `${parts.join('')}@example.org`)
    const taken = [...new Set(texts.map(canonicalAddress).filter((text) => addressProblem(text) === null))]
    expect(taken.length).toBeGreaterThan(20)
    const refused = await project.sql('select t from unnest($1::text[]) t where not internal.is_email(t)', [taken])
    expect(refused).toEqual([])
    const raw = [
      'a\u200bb@example.org',
      'cafe\u0301@example.org',
      '.a@example.org',
      'a..b@example.org',
      'a.@example.org',
      'a\u{e0001}b@example.org',
    ]
    expect(await project.sql('select t from unnest($1::text[]) t where internal.is_email(t)', [raw])).toEqual([])
  })

  test('is one account however it was typed: of a developer, of a user, in an invite', async () => {
    const own = freshEmail().replace(/@.*/, '')
    const [apart, joined] = [`cafe\u0301.${own}`, `caf\u00e9.${own}`]
    const password = 'a long passphrase'
    const [asIs, asDns] = ['b\u00fccher.example', 'xn--bcher-kva.example']
    const forms = [`${apart}@${asIs}`, `${joined}@${asDns}`, `${joined}@${asIs}`.toUpperCase()]
    expect((await harness.anyone.post('/auth/developer/signup', { email: forms[0], password })).status).toBe(201)
    for (const email of forms)
      expect((await harness.anyone.post('/auth/developer/login', { email, password })).status).toBe(200)
    expect((await project.app.post('/client/auth/email/signup', { email: forms[1], password })).status).toBe(201)
    for (const email of forms)
      expect((await project.app.post('/client/auth/email/login', { email, password })).status).toBe(200)
    const made = await project.admin.post('/users', { email: forms[0] })
    expect(made.error?.code).toBe('USER_ALREADY_EXISTS')
    const invites = `/admin/organizations/${await personalOf(project.developer)}/invites`
    expect((await project.developer.post(invites, { email: forms[2], role: 'viewer' })).data.email).toBe(
      `${joined}@${asDns}`,
    )
    expect((await project.developer.post(invites, { email: forms[0], role: 'viewer' })).error?.code).toBe('CONFLICT')
  })
})
