import { createPrivateKey, createPublicKey, randomUUID } from 'node:crypto'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { canonicalDomain, dkimPurpose } from '#server/providers/domains.ts'
import { startDnsServer } from '#test/support/dns.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { domainsCheck } from '#workers/tasks/domains__check.ts'

const dns = await startDnsServer()
afterAll(() => dns.stop())
const harness = await startHarness({
  env: { DNS_SERVERS: dns.address, PUBLIC_URL: 'https://api.trellis.example', MAIL_HOST: 'mx.trellis.example' },
})
const project = await harness.project()
afterEach(async () => {
  harness.setTime(null)
  dns.fail(false)
  dns.beforeAnswer(null)
  await harness.control('delete from app.domains')
})

let count = 0
const name = () => {
  count += 1
  return `d${count}.example.com`
}
type Row = { type: string; name: string; value: string; purpose: string; verified: boolean }
type Domain = { id: string; domain: string; status: string; dns_records: Row[]; error: string | null }
const attach = async (kind = 'email', domain = name(), of: Project = project): Promise<Domain> => {
  const made = await of.admin.post('/domains', { domain, kind })
  expect(made.status, made.text).toBe(201)
  return made.data
}
const verify = (domain: { id: string }, of: Project = project) => of.admin.post(`/domains/${domain.id}/verify`)
const proved = async (kind = 'email', domain = name(), of: Project = project) => {
  const made = await attach(kind, domain, of)
  dns.put(made.dns_records)
  const verified = await verify(made, of)
  expect(verified.data?.status, verified.text).toBe('verified')
  return made
}
const statusOf = async ({ id }: { id: string }) =>
  (await harness.control('select status, error from app.domains where id = $1', [id]))[0]
/** A day later, without moving the clock, which sessions of developers live by. */
const checkDaily = async () => {
  await harness.control(`update app.domains set next_check_at = next_check_at - interval '1 day'`)
  await domainsCheck.run(harness.running.services, {})
}

describe('a sending domain', () => {
  test('names its records, and is verified when all but DMARC are there', async () => {
    const made = await attach('email', '  Mail.Example.ORG. ')
    expect(made).toMatchObject({
      domain: 'mail.example.org',
      kind: 'email',
      status: 'pending',
      verified_at: null,
      last_checked_at: null,
      error: null,
    })
    expect(made.dns_records.map(({ type, name, purpose }) => `${type} ${name} ${purpose}`)).toEqual([
      'TXT mail.example.org ownership',
      'TXT svc1._domainkey.mail.example.org dkim',
      'TXT mail.example.org spf',
      'MX send.mail.example.org return_path_mx',
      'TXT send.mail.example.org return_path_spf',
      'TXT _dmarc.mail.example.org dmarc',
    ])
    expect(made.dns_records[0]?.value).toMatch(/^svc-verify=[0-9a-f]{32}$/)
    expect(made.dns_records[2]?.value).toBe('v=spf1 include:mx.trellis.example ~all')
    dns.put(made.dns_records.filter(({ purpose }) => purpose !== 'dmarc'))
    const verified = await verify(made)
    expect(verified.data).toMatchObject({ status: 'verified', error: null, verified_at: expect.any(String) })
    expect(verified.data.dns_records.map(({ verified }: Row) => verified)).toEqual([
      true,
      true,
      true,
      true,
      true,
      false,
    ])
    expect((await project.admin.get(`/domains/${made.id}`)).data).toEqual(verified.data)
  })

  test.each(['ownership', 'dkim', 'spf', 'return_path_mx', 'return_path_spf'])(
    'is not verified without its record for %s, and says which is missing',
    async (purpose) => {
      const made = await attach()
      dns.put(made.dns_records.filter((record) => record.purpose !== purpose))
      const checked = await verify(made)
      expect(checked.data).toMatchObject({ status: 'pending', verified_at: null })
      expect(checked.data.error).toContain(`(${purpose})`)
      expect(checked.data.dns_records.filter(({ verified }: Row) => !verified)).toMatchObject([{ purpose }])
    },
  )

  test('is not verified by records of another domain or of another row', async () => {
    const [made, other] = [await attach(), await attach()]
    const swapped = made.dns_records.map((record, index) => ({
      ...record,
      value: other.dns_records[index]?.value ?? '',
    }))
    dns.put(swapped)
    expect((await verify(made)).data.dns_records.map(({ verified }: Row) => verified)).toEqual([
      false,
      false,
      true,
      true,
      true,
      true,
    ])
  })

  test('has a key of its own, encrypted at rest and never answered', async () => {
    const made = await attach()
    const [row] = await harness.control('select * from app.domains where id = $1', [made.id])
    const pem = harness.running.services.secrets.decrypt(dkimPurpose(project.id, made.domain), row.dkim_sealed)
    const key = createPrivateKey(pem)
    expect(key.asymmetricKeyDetails?.modulusLength).toBe(2048)
    const der = createPublicKey(pem).export({ type: 'spki', format: 'der' })
    expect(made.dns_records[1]?.value).toBe(`v=DKIM1; k=rsa; p=${der.toString('base64')}`)
    const audit = await project.developer.get(`/admin/projects/${project.id}/audit-events?target_id=${made.id}`)
    expect(audit.data.map(({ action }: { action: string }) => action)).toEqual(['domains.create'])
    expect(audit.text).not.toContain(row.dkim_sealed)
  })

  test('lets the project send from it, and is not detached while it does', async () => {
    const made = await proved()
    const path = `/admin/projects/${project.id}`
    expect((await project.developer.patch(path, { default_from_email: `a@${made.domain}` })).status).toBe(200)
    expectRefusal(await project.admin.delete(`/domains/${made.id}`), 409, 'DOMAIN_IN_USE')
    await project.developer.patch(path, { default_from_email: null })
    expect((await project.admin.delete(`/domains/${made.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await project.admin.delete(`/domains/${made.id}`), 404, 'NOT_FOUND')
    expectRefusal(
      await project.developer.patch(path, { default_from_email: `a@${made.domain}` }),
      400,
      'INVALID_SENDER',
    )
  })

  test('a detachment and a change of the sender at the same time: never both', async () => {
    for (let round = 0; round < 5; round += 1) {
      const made = await proved()
      const path = `/admin/projects/${project.id}`
      const [gone, changed] = await Promise.all([
        project.admin.delete(`/domains/${made.id}`),
        project.developer.patch(path, { default_from_email: `a@${made.domain}` }),
      ])
      expect([
        [200, 400],
        [409, 200],
      ]).toContainEqual([gone.status, changed.status])
      await project.developer.patch(path, { default_from_email: null })
    }
  })
})

describe('a domain of a site', () => {
  test('points to the installation, and is answered to a reverse proxy once it is verified', async () => {
    const ask = (domain: string) => fetch(`${harness.url}/internal/tls-ask?domain=${domain}`)
    const made = await attach('site')
    expect(made.dns_records.map(({ type, name, value }) => [type, name, value])).toEqual([
      ['TXT', `_svc-verify.${made.domain}`, expect.stringMatching(/^svc-verify=/)],
      ['CNAME', made.domain, 'api.trellis.example'],
    ])
    expect((await ask(made.domain)).status).toBe(404)
    dns.put(made.dns_records)
    expect((await verify(made)).data.status).toBe('verified')
    expect((await ask(made.domain.toUpperCase())).status).toBe(200)
    const mail = await proved('email')
    expect((await ask(mail.domain)).status).toBe(404)
    expect((await ask('')).status).toBe(400)
    expect((await ask('x'.repeat(254))).status).toBe(400)
  })

  test('of functions keeps the project from being deleted, pending or not', async () => {
    const other = await harness.project()
    const made = await attach('function', name(), other)
    expectRefusal(await other.developer.delete(`/admin/projects/${other.id}`), 409, 'FUNCTION_DOMAINS_ATTACHED')
    expect((await other.admin.delete(`/domains/${made.id}`)).status).toBe(200)
    expect((await other.developer.delete(`/admin/projects/${other.id}`)).status).toBe(200)
  })
})

describe('checks', () => {
  test('are one in ten seconds for each domain, however many ask at once', async () => {
    harness.setTime(new Date())
    const [made, other] = [await attach(), await attach()]
    const answers = await Promise.all(Array.from({ length: 8 }, () => verify(made)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const refused = answers.find(({ status }) => status === 429)
    expect([refused?.error?.code, refused?.headers.get('retry-after')]).toEqual(['RATE_LIMITED', '10'])
    expect((await verify(other)).status).toBe(200)
    harness.advance(9.999)
    expect((await verify(made)).status).toBe(429)
    harness.advance(0.001)
    expect((await verify(made)).status).toBe(200)
  })

  test('name servers that do not answer decide nothing', async () => {
    const made = await proved()
    dns.fail(true)
    harness.advance(11)
    const checked = await verify(made)
    expect(checked.data).toMatchObject({ status: 'verified', error: expect.stringContaining('did not answer') })
    for (let day = 1; day < 6; day += 1) await checkDaily()
    expect(await statusOf(made)).toMatchObject({ status: 'verified' })
  })

  test('daily ones fail a domain after three in a row without the records; verify makes it pending again', async () => {
    const made = await proved()
    const day = async () => {
      await checkDaily()
      return (await statusOf(made)).status
    }
    const lose = () => dns.remove(({ type, name }) => type === 'TXT' && name === made.domain)
    lose()
    expect([await day(), await day()]).toEqual(['verified', 'verified'])
    dns.put(made.dns_records.filter(({ type, name }) => type === 'TXT' && name === made.domain))
    expect(await day()).toBe('verified')
    lose()
    expect([await day(), await day(), await day()]).toEqual(['verified', 'verified', 'failed'])
    expect(await day()).toBe('failed')
    harness.advance(11)
    expect((await verify(made)).data.status).toBe('pending')
    dns.put(made.dns_records)
    expect(await day()).toBe('verified')
  })

  test('a domain that is detached while DNS is asked is 404', async () => {
    const made = await attach()
    dns.beforeAnswer(async () => {
      dns.beforeAnswer(null)
      await project.admin.delete(`/domains/${made.id}`)
    })
    expectRefusal(await verify(made), 404, 'NOT_FOUND')
  })
})

describe('one domain in two projects', () => {
  test('is the one’s that proved it, by POST and by verify', async () => {
    const other = await harness.project()
    const domain = name()
    const second = await attach('email', domain, other)
    await proved('email', domain)
    dns.put(second.dns_records)
    expectRefusal(await verify(second, other), 409, 'DOMAIN_TAKEN')
    expect((await other.admin.get(`/domains/${second.id}`)).data.status).toBe('pending')
    await checkDaily()
    expect(await statusOf(second)).toMatchObject({
      status: 'pending',
      error: expect.stringContaining('Another project'),
    })
    const third = await harness.project()
    expectRefusal(await third.admin.post('/domains', { domain, kind: 'email' }), 409, 'DOMAIN_TAKEN')
    // another use of the name is another proof
    expect((await third.admin.post('/domains', { domain, kind: 'site' })).status).toBe(201)
  })

  test('proved by both at once is one’s', async () => {
    const projects = await Promise.all(Array.from({ length: 4 }, () => harness.project()))
    const domain = name()
    const made = await Promise.all(projects.map((each) => attach('email', domain, each)))
    for (const each of made) dns.put(each.dns_records)
    // every check has seen its records before the first is stored
    let waiting = 0
    let go = () => {}
    const all = new Promise<void>((resolve) => {
      go = resolve
    })
    dns.beforeAnswer(async () => {
      waiting += 1
      if (waiting >= 24) go()
      await all
    })
    const answers = await Promise.all(made.map((each, index) => verify(each, projects[index])))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409])
    const rows = await harness.control('select status from app.domains where domain = $1', [domain])
    expect(rows.filter(({ status }) => status === 'verified')).toHaveLength(1)
  })
})

describe('the list', () => {
  test('is newest first, by kind, of this project only, and at most 20', async () => {
    harness.setTime(new Date())
    const other = await harness.project()
    await attach('site', name(), other)
    const made: Domain[] = []
    for (let n = 0; n < 19; n += 1) {
      harness.advance(1)
      made.unshift(await attach('site'))
    }
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => project.admin.post('/domains', { domain: name(), kind: 'email' })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
    expect(answers.find(({ status }) => status === 409)?.error).toMatchObject({
      code: 'LIMIT_REACHED',
      details: { limit: 20 },
    })
    const listed = await project.admin.get('/domains?kind=site&limit=2&offset=1')
    expect(listed.body).toEqual({ data: made.slice(1, 3), total: 19, offset: 1, limit: 2 })
    expect((await project.admin.get('/domains')).body.total).toBe(20)
    expectRefusal(await project.admin.get('/domains?kind=x'), 400, 'INVALID_INPUT', 'kind')
  })

  test('holds a name once for each kind', async () => {
    const made = await attach('site')
    const again = await project.admin.post('/domains', { domain: made.domain, kind: 'site' })
    expectRefusal(again, 409, 'CONFLICT')
    expect(again.error?.details).toEqual({ field: 'domain' })
    expect((await project.admin.post('/domains', { domain: made.domain, kind: 'function' })).status).toBe(201)
  })
})

test('names are canonical; addresses, single labels and public suffixes are refused', async () => {
  expect(canonicalDomain('Bücher.Example.DE')).toBe('xn--bcher-kva.example.de')
  expect(canonicalDomain('example.github.io')).toBe('example.github.io')
  for (const bad of [
    '',
    ' ',
    'com',
    'localhost',
    'co.uk',
    'github.io',
    '127.0.0.1',
    '0x7f.1',
    '[::1]',
    'a@example.com',
    'https://example.com',
    'example.com:443',
    '-a.example.com',
    'a_b.example.com',
    'a..example.com',
    '*.example.com',
    `${'a'.repeat(64)}.example.com`,
    'exa mple.com',
    'example.com\r\nx',
    'example.com/a',
    'example.com?a',
    'example.com#x',
    'ex%61mple.com',
    'xn--a.com',
    'a.xn--.com',
    'example.com\\a',
    'example.com\u2028',
    'example.com／a',
    'example.com\u202e',
  ]) {
    expect(canonicalDomain(bad), bad).toBeNull()
    const answer = await project.admin.post('/domains', { domain: bad, kind: 'email' })
    expect([answer.status, answer.error?.code], bad).toEqual([400, 'VALIDATION_ERROR'])
  }
  expectInvalid(await project.admin.post('/domains', { domain: name(), kind: 'x' }), 'kind')
})

test('another developer, another project and a malformed id reach no domain', async () => {
  const made = await attach()
  const stranger = await harness.developer()
  const path = `/admin/projects/${project.id}/domains`
  for (const answer of [
    await stranger.get(path),
    await stranger.post(path, { domain: name(), kind: 'email' }),
    await stranger.get(`${path}/${made.id}`),
    await stranger.post(`${path}/${made.id}/verify`),
    await stranger.delete(`${path}/${made.id}`),
  ])
    expectRefusal(answer, 403, 'PROJECT_FORBIDDEN')
  const mine = await harness.project({ developer: project.developer })
  for (const id of [made.id, randomUUID()]) {
    expectRefusal(await mine.admin.get(`/domains/${id}`), 404, 'NOT_FOUND')
    expectRefusal(await mine.admin.post(`/domains/${id}/verify`), 404, 'NOT_FOUND')
    expectRefusal(await mine.admin.delete(`/domains/${id}`), 404, 'NOT_FOUND')
  }
  expectRefusal(await project.admin.get('/domains/nothing'), 400, 'INVALID_ID')
})
