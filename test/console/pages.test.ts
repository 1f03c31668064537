import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import axe from 'axe-core'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, expect, test } from 'vitest'
import { root } from '#server/root.ts'
import { chromiumPath } from '#test/support/chromium.ts'
import { startHarness } from '#test/support/harness.ts'
import { startFcm } from '#test/support/push_providers.ts'
import { isWhole, newLeaf, rulesOf, sources } from '../../console/src/parts/rules.ts'

test('conditions of a segment are what the server takes: numbers as numbers, text as text', () => {
  const leaf = { ...newLeaf('property'), column: 'plan.tier', value: 'pro' }
  expect(rulesOf('and', [leaf])).toEqual({ and: [{ source: 'property', column: 'plan.tier', op: 'eq', value: 'pro' }] })
  const count = { ...newLeaf('event'), event_name: 'lesson', op: 'gte', value: '3', within_days: '7' }
  expect(rulesOf('or', [count])).toEqual({
    or: [{ source: 'event', event_name: 'lesson', measure: 'count', op: 'gte', value: 3, within_days: 7 }],
  })
  const none = { ...newLeaf('user'), column: 'email', op: 'is_null', value: 'x' }
  expect(rulesOf('and', [none])).toEqual({ and: [{ source: 'user', column: 'email', op: 'is_null' }] })
  expect([isWhole([leaf, count, none]), isWhole([newLeaf('property')])]).toEqual([true, false])
  for (const source of Object.keys(sources)) expect(newLeaf(source)['source']).toBe(source)
})

/** The pages made by hand, in a real browser. CONSOLE_PICTURES names a folder for pictures of them. */
if (!chromiumPath) {
  test.skip('there is no Chromium on this machine: CHROMIUM_BIN may name one', () => undefined)
} else {
  const pictures = process.env['CONSOLE_PICTURES']
  const fcm = await startFcm(() => new Date())
  afterAll(() => fcm.close())
  const harness = await startHarness({
    env: { FCM_BASE_URL: fcm.url, WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: fcm.caFile },
  })
  const project = await harness.project()
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  afterAll(() => browser.close())
  const url = harness.url.replace('127.0.0.1', 'localhost')
  const base = `${url}/console/projects/${project.id}`
  const complaints: string[] = []

  const signedIn = async (context: BrowserContext, email = project.developer.email): Promise<Page> => {
    const page = await context.newPage()
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('console', (message) => {
      if (/Content Security Policy|Trusted/i.test(message.text())) complaints.push(message.text())
    })
    await page.goto(`${url}/console`)
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill('a long passphrase')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { name: 'Projects' }).waitFor()
    return page
  }
  const page = await signedIn(await browser.newContext({ viewport: { width: 1200, height: 800 } }))
  const picture = async (name: string) => {
    if (!pictures) return
    await mkdir(pictures, { recursive: true })
    await page.screenshot({ path: join(pictures, `console-${name}.png`) })
  }
  const made = async (path: string, body: object) => {
    const answer = await project.admin.post(path, body)
    expect(answer.status, answer.text).toBe(201)
    return answer.data
  }
  const hostile = '<img src=x onerror="document.title=1">'

  const streak = await made('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'lesson', period: 'day' })
  await made('/xp/rules', { key: 'lessons', name: 'Lessons', event_name: 'lesson', amount: 10 })
  const board = await made('/leaderboards', { key: 'top', name: 'Top', client_writable: true })
  const flag = await made('/flags', { key: 'dark', name: 'Dark', value_type: 'boolean', default_value: false })
  const user = await project.user()
  await user.patch('/client/users/me', { display_name: hostile })
  await user.post('/client/events', { event_name: 'lesson', properties: { minutes: 12, note: hostile } })

  test('the overview has a plot of each series, and the project’s operations', async () => {
    await page.goto(base)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByRole('img', { name: /^Events: 30 values/ }).waitFor()
    expect(await page.getByRole('img').count()).toBe(7)
    await picture('overview')
    await page.getByText('As a table').first().click()
    expect(await page.getByRole('rowheader').count()).toBeGreaterThan(29)
  })

  test('events come by themselves: a streak is seen moving, and a pause holds them', async () => {
    await page.goto(`${base}/events`)
    await page.getByRole('main').getByRole('link', { name: 'Events live' }).click()
    await page.getByRole('cell', { name: 'lesson', exact: true }).first().waitFor()
    await page.getByLabel('System events').check()
    const other = await project.user()
    await other.post('/client/events', { event_name: 'lesson' })
    await page
      .getByRole('cell', { name: /^svc\.streak\.(started|extended)$/ })
      .first()
      .waitFor({ timeout: 20_000 })
    await picture('events-live')
    await page.getByLabel('System events').uncheck()
    await page.getByRole('searchbox', { name: 'Event' }).fill('after_pause')
    await page.getByText('0 events shown').waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await other.post('/client/events', { event_name: 'after_pause' })
    expect(await page.getByRole('cell', { name: 'after_pause' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.getByRole('cell', { name: 'after_pause' }).waitFor({ timeout: 20_000 })
  })

  test('a user’s timeline shows what the user did and what it moved; a hostile name is text', async () => {
    await page.goto(`${base}/users?item=${user.id}`)
    await page.getByRole('link', { name: 'Timeline', exact: true }).click()
    await page.getByRole('heading', { name: hostile }).waitFor()
    await page.locator('.timeline .did', { hasText: 'lesson' }).waitFor()
    expect(await page.locator('.timeline .moved').count()).toBeGreaterThan(0)
    expect(await page.title()).toBe('Trellis console')
    await picture('timeline')
  })

  test('a segment is built by conditions, its count changes as one types, and a refusal is shown', async () => {
    await page.goto(`${base}/build/segment`)
    await page.getByText('Fill in every condition.').waitFor()
    await page.getByLabel('Source').selectOption('event')
    await page.getByLabel('event name').fill('lesson')
    await page.getByLabel('op').selectOption('gte')
    await page.getByLabel('value').fill('1')
    await page.getByText('2 users match.').waitFor({ timeout: 20_000 })
    await page.getByLabel('value').fill('5')
    await page.getByText('0 users match.').waitFor({ timeout: 20_000 })
    await page.getByRole('button', { name: 'Add a condition' }).click()
    await page.getByText('Fill in every condition.').waitFor()
    await page.getByRole('button', { name: 'Remove condition 2' }).click()
    await page.getByLabel('Source').selectOption('segment')
    await page.getByLabel('segment id').fill('none')
    await page.getByRole('alert').waitFor({ timeout: 20_000 })
    await page.getByLabel('Source').selectOption('event')
    await page.getByLabel('event name').fill('lesson')
    await page.getByLabel('op').selectOption('gte')
    await page.getByLabel('value').fill('1')
    await page.getByText('2 users match.').waitFor({ timeout: 20_000 })
    await picture('segment-builder')
    await page.getByLabel('Key').fill('learners')
    await page.getByLabel('Name', { exact: true }).fill('Learners')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('cell', { name: 'Learners', exact: true }).waitFor()
    expect((await project.admin.get('/segments/learners')).data.rules).toEqual({
      and: [{ source: 'event', event_name: 'lesson', measure: 'count', op: 'gte', value: 1 }],
    })
  })

  test('other rules of a streak, and a rule of XP, are simulated; what is refused is said', async () => {
    await page.goto(`${base}/simulate/streak`)
    await page.getByLabel('Streak', { exact: true }).selectOption('daily')
    await page.getByLabel(/^min count/).fill('2')
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByRole('img', { name: /^Broken streaks/ }).waitFor()
    await page.getByLabel(/^min count/).fill('-1')
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByRole('alert').waitFor()
    await page.goto(`${base}/simulate/xp`)
    await page.getByLabel('Rule').selectOption('lessons')
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByText('2 awards to 2 users, 20 XP in all.').waitFor()
    await picture('simulator')
    expect((await project.admin.get(`/streaks/${streak.id}`)).data.min_count).toBe(1)
  })

  test('a leaderboard moves while one looks', async () => {
    await user.post('/client/leaderboards/top/scores', { score: 10 })
    await page.goto(`${base}/leaderboard/live?item=${board.key}`)
    await page.getByRole('cell', { name: '10', exact: true }).waitFor()
    await user.post('/client/leaderboards/top/scores', { score: 25 })
    await page.getByRole('cell', { name: '25', exact: true }).waitFor({ timeout: 20_000 })
    expect(await page.getByRole('cell', { name: hostile }).count()).toBe(1)
  })

  test('who sees what of a flag, with every condition; an unknown user is refused', async () => {
    await page.goto(`${base}/flag/who?item=${flag.key}`)
    await page.getByLabel('User id').fill(user.id)
    await page.getByRole('button', { name: 'Evaluate' }).click()
    await page.getByRole('status').filter({ hasText: 'false (' }).waitFor()
    await page.getByLabel('User id').fill('nobody')
    await page.getByRole('button', { name: 'Evaluate' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('status').count()).toBe(0)
  })

  test('the moderation queue is worked by keyboard', async () => {
    const authors = [await project.user(), await project.user(), await project.user()]
    for (const author of authors) {
      const report = { subject_type: 'user', subject_id: author.id, reason: 'spam' }
      expect((await user.post('/client/moderation/reports', report)).status).toBe(201)
    }
    await page.goto(`${base}/live/moderation`)
    await page.getByText('3 items wait.').waitFor()
    await picture('moderation')
    await page.keyboard.press('j')
    await page.keyboard.press('a')
    await page.getByText('2 items wait.').waitFor()
    await page.keyboard.press('r')
    await page.getByText('1 item waits.').waitFor()
    await page.getByRole('button', { name: 'Escalate (e)' }).click()
    await page.getByText('Nothing here yet.').waitFor()
    const counts = await Promise.all(
      ['approved', 'rejected', 'escalated'].map(
        async (status) => (await project.admin.get(`/moderation/queue?status=${status}`)).body.total,
      ),
    )
    expect(counts).toEqual([1, 1, 1])
  })

  test('rows of a collection are filtered and edited in place; what is refused stays in its cell', async () => {
    await made('/collections', {
      name: 'notes',
      columns: [
        { name: 'title', type: 'text', nullable: false, max_length: 20 },
        { name: 'stars', type: 'integer' },
      ],
    })
    for (const stars of [1, 2, 3]) await user.post('/client/collections/notes', { title: `note ${stars}`, stars })
    await page.goto(`${base}/collections`)
    await page.getByRole('link', { name: 'notes', exact: true }).click()
    await page.getByRole('link', { name: 'Rows as a grid' }).click()
    await page.getByText('Rows belong to a user. Read: owner. Write: owner.').waitFor()
    await page.getByLabel('Filter (JSON)').fill('{"column": "stars", "op": "eq", "value": 2}')
    await page.getByRole('button', { name: 'Apply' }).click()
    const cell = page.getByRole('button', { name: /^title of .*: note 2$/ })
    await cell.click()
    await expect.poll(() => page.getByRole('row').count()).toBe(2)
    const input = page.getByLabel(/^title of/)
    await input.fill('far too long for this column')
    await input.press('Enter')
    await page.getByRole('alert').waitFor()
    expect(await input.getAttribute('aria-invalid')).toBe('true')
    await input.fill('renamed')
    await input.press('Enter')
    await page.getByRole('button', { name: /^title of .*: renamed$/ }).waitFor()
    await picture('grid')
    await page.getByRole('button', { name: /^stars of/ }).click()
    await page.getByLabel(/^stars of/).fill('7')
    await page.getByLabel(/^stars of/).press('Escape')
    const { data } = await user.get('/client/collections/notes?order=stars')
    expect(data.map(({ title, stars }: any) => [title, stars])).toEqual([
      ['note 1', 1],
      ['renamed', 2],
      ['note 3', 3],
    ])
  })

  test('a collection is built by its columns: the statements first, then the table; what is refused is said', async () => {
    await page.goto(`${base}/build/collection`)
    await page.getByLabel('Name of the collection').fill('books')
    const first = page.getByRole('group', { name: 'Column 1' })
    await first.getByLabel('Name').fill('title')
    await first.getByLabel('Longest text').fill('80')
    await first.getByLabel('May be null').uncheck()
    await page.getByRole('button', { name: 'Add a column' }).click()
    const second = page.getByRole('group', { name: 'Column 2' })
    await second.getByLabel('Name').fill('id')
    await second.getByLabel('Type').selectOption('integer')
    await page.getByRole('button', { name: 'Dry run' }).click()
    await page.getByRole('alert').filter({ hasText: 'RESERVED_NAME' }).waitFor()
    await second.getByLabel('Name').fill('pages')
    await second.getByLabel('Unique').check()
    await page.getByRole('button', { name: 'Dry run' }).click()
    await page.getByText(/^It would run \d+ statements, .*Nothing was changed\.$/).waitFor()
    expect(await page.getByRole('region', { name: 'Plan' }).innerText()).toContain('create table')
    expect((await project.admin.get('/collections/books')).status).toBe(404)
    await picture('collection-builder')
    await page.getByLabel('Who reads').fill('public')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('heading', { name: 'books' }).waitFor()
    expect((await project.admin.get('/collections/books')).data).toMatchObject({
      read_policy: 'public',
      write_policy: 'owner',
      columns: [
        { name: 'title', type: 'text', nullable: false, max_length: 80, unique: false },
        { name: 'pages', type: 'integer', nullable: true, unique: true },
      ],
    })
  })

  test('what takes parameters has them as fields, and what can be tried has a dry run', async () => {
    await page.goto(`${base}/collections?item=books`)
    await page.getByRole('textbox', { name: 'Description' }).fill('What people read')
    await page.getByRole('button', { name: 'Dry run' }).first().click()
    await page.getByRole('region', { name: 'Answer' }).waitFor()
    expect((await project.admin.get('/collections/books')).data.description).toBe(null)
    await page.getByRole('button', { name: 'Save' }).click()
    await expect
      .poll(async () => (await project.admin.get('/collections/books')).data.description)
      .toBe('What people read')
    await page.getByText('Drop a collection', { exact: false }).first().click()
    const drop = page.getByRole('form', { name: /^Drop|^Delete/ })
    await drop.getByRole('button', { name: 'Delete' }).click()
    await drop.getByRole('alert').waitFor()
    await drop.getByLabel('Confirm').fill('books')
    await drop.getByRole('button', { name: 'Dry run' }).click()
    await page.getByRole('region', { name: 'Answer' }).last().waitFor()
    expect((await project.admin.get('/collections/books')).status).toBe(200)
    await drop.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'Collections', exact: true }).waitFor()
    expect((await project.admin.get('/collections/books')).status).toBe(404)
  })

  test('the team: somebody is invited, and an owner who must stay one does', async () => {
    await page.goto(`${base}/team`)
    const { email } = project.developer
    await page.getByLabel(`Role of ${email}`).selectOption('viewer')
    await page.getByRole('alert').filter({ hasText: 'PERSONAL_ORGANIZATION' }).waitFor()
    await page.getByLabel('Email').fill('new@example.org')
    await page.getByRole('button', { name: 'Invite' }).click()
    await page.getByRole('listitem').filter({ hasText: 'new@example.org · developer · pending' }).waitFor()
    await page.getByLabel('Email').fill('no address')
    await page.getByRole('button', { name: 'Invite' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('listitem').filter({ hasText: 'pending' }).count()).toBe(1)
  })

  test('the query of the grid is explained, for administrators and as a user', async () => {
    await page.goto(`${base}/collection/rows?item=notes`)
    await page.getByLabel('Filter (JSON)').fill('{"column": "title", "op": "eq", "value": "renamed"}')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('How Postgres finds these rows').click()
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.locator('pre', { hasText: "title = 'renamed'" }).waitFor()
    expect(await page.locator('pre', { hasText: user.id }).count()).toBe(0)
    await page.getByLabel('As this user (id)').fill(user.id)
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.locator('pre', { hasText: /user_id = /i }).waitFor()
    await page.getByRole('main').getByRole('cell', { name: 'notes', exact: true }).first().waitFor()
    await picture('explain')
    await page.getByLabel('As this user (id)').fill('nobody')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByRole('alert').waitFor()
  })

  test('100,000 users are one list: what is seen is drawn and asked for, what is scrolled past is not', {
    timeout: 120_000,
  }, async () => {
    const many = await harness.project()
    await many.sql(
      `insert into app.users (display_name, last_seen_at) select 'user ' || lpad(n::text, 6, '0'), now() - n * interval '1 second' from generate_series(1, 100000) n`,
    )
    const context = await browser.newContext({ viewport: { width: 1200, height: 800 } })
    const own = await signedIn(context, many.developer.email)
    const asked: string[] = []
    own.on('request', (request) => {
      if (request.url().includes('/users?')) asked.push(new URL(request.url()).searchParams.get('offset') ?? '')
    })
    await own.goto(`${url}/console/projects/${many.id}/users`)
    await own.getByRole('main').getByRole('link', { name: 'All users' }).click()
    await own.getByText('100000 users.').waitFor()
    await own.getByRole('link', { name: 'user 000001', exact: true }).waitFor()
    const table = own.getByRole('region', { name: 'Users' })
    expect(await table.getByRole('row').count()).toBeLessThan(80)
    const before = asked.length
    await table.focus()
    await own.keyboard.press('End')
    await own.getByRole('link', { name: 'user 100000', exact: true }).waitFor()
    expect(await table.getByRole('row').count()).toBeLessThan(80)
    // the last pages, and none of the thousand before
    expect(asked.length - before).toBeLessThan(30)
    await table.evaluate((element: any) => element.scrollTo(0, 36 * 50000))
    await own.getByRole('link', { name: 'user 050001', exact: true }).waitFor()
    await own.getByLabel('Search').fill('user 09999')
    await own.getByRole('button', { name: 'Apply' }).click()
    await own.getByText('10 users.').waitFor()
    await own.getByRole('link', { name: 'user 099990', exact: true }).waitFor()
    await context.close()
  })

  test('keys and tokens: each is shown once, works, and ends when it is taken away', async () => {
    page.on('dialog', (dialog) => void dialog.accept())
    await page.goto(`${base}/keys`)
    await page.getByLabel('Type').selectOption('server')
    await page.getByRole('button', { name: 'Create a key' }).click()
    const shown = page.getByRole('region', { name: 'The new key' }).locator('pre')
    await shown.waitFor()
    const key = (await shown.textContent()) ?? ''
    const withKey = () => harness.anyone.get('/client/flags', { 'x-api-key': key, 'x-on-behalf-of': user.id })
    expect((await withKey()).status).toBe(200)
    await picture('keys')
    await page.reload()
    const prefix = key.slice(0, (await page.getByRole('cell', { name: '…' }).last().textContent())?.length ?? 0)
    expect(prefix.length).toBeGreaterThan(8)
    await page.getByRole('main').getByRole('heading', { name: 'API keys' }).waitFor()
    expect(await page.getByText(key, { exact: true }).count()).toBe(0)
    await page
      .getByRole('button', { name: new RegExp(`^Deactivate ${key.slice(0, 8)}`) })
      .last()
      .click()
    await page.getByRole('cell', { name: 'inactive' }).waitFor()
    await page.getByLabel('Name', { exact: true }).fill('reports')
    await page.getByLabel('Scopes').fill('nonsense')
    await page.getByRole('button', { name: 'Create a token' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Scopes').fill('*:read')
    await page.getByRole('button', { name: 'Create a token' }).click()
    await shown.waitFor()
    const token = (await shown.textContent()) ?? ''
    const withToken = () =>
      harness.anyone.get(`/admin/projects/${project.id}/users`, { authorization: `Bearer ${token}` })
    expect((await withToken()).status).toBe(200)
    await page.getByRole('button', { name: 'Revoke reports' }).click()
    await page.getByRole('listitem').filter({ hasText: 'inactive' }).waitFor()
    expect((await withToken()).status).toBe(401)
  })

  test('a push is composed, seen as one user would see it, and scheduled; what is refused is said', async () => {
    await page.goto(`${base}/compose/push`)
    await page.getByLabel('Name', { exact: true }).fill('Reminder')
    await page.getByLabel('Title').fill('Hello {{display_name|friend}}')
    await page.getByLabel('Message').fill(hostile)
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.getByText('Hello friend').waitFor()
    await page.getByText(/^Reaches \d+ users, on 0 devices\.$/).waitFor()
    await page.getByText(/left out: no token$/).waitFor()
    await page.getByLabel('Audience').selectOption({ label: 'Learners' })
    await page.getByLabel('User id, for preview and test').fill(user.id)
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.getByText(`Hello ${hostile}`).waitFor()
    await picture('push-composer')
    await page.getByLabel('User id, for preview and test').fill('nobody')
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('User id, for preview and test').fill('')
    await page.getByLabel('Send at').fill('2090-01-01T18:00')
    await page.getByRole('button', { name: 'Schedule' }).click()
    await page.getByRole('alert').filter({ hasText: 'PUSH_NOT_CONFIGURED' }).waitFor()
    expect((await project.admin.get('/push/campaigns')).data).toMatchObject([{ status: 'draft' }])
    expect((await project.admin.post('/integrations', { provider: 'fcm', config: fcm.config })).status).toBe(201)
    await page.getByRole('button', { name: 'Schedule' }).click()
    await page.getByRole('heading', { name: 'Reminder' }).waitFor()
    const { data } = await project.admin.get('/push/campaigns')
    expect(data).toMatchObject([
      { name: 'Reminder', status: 'scheduled', audience: { segment_id: expect.any(String) } },
    ])
  })

  test('files are uploaded, seen, described, found and deleted; an SVG is not shown as a picture', async () => {
    await page.goto(`${base}/browse/media`)
    const png = await readFile(join(root, 'docs/pictures/console-overview.png'))
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>document.title=1</script></svg>')
    await page.getByLabel('Upload a file').setInputFiles({ name: 'seen.png', mimeType: 'image/png', buffer: png })
    const image = page.getByRole('img', { name: 'seen.png' })
    await image.waitFor()
    await expect.poll(() => image.evaluate((element: any) => element.naturalWidth)).toBeGreaterThan(100)
    await page.getByLabel('Text for seen.png').fill(hostile)
    await page.getByRole('listitem').filter({ hasText: 'seen.png' }).getByRole('button', { name: 'Save' }).click()
    await page.getByRole('img', { name: hostile }).waitFor()
    await page.getByLabel('Upload a file').setInputFiles({ name: 'drawn.txt', mimeType: 'text/plain', buffer: svg })
    await page.getByRole('link', { name: 'drawn.txt' }).waitFor()
    expect(await page.getByRole('img').count()).toBe(1)
    await picture('media')
    await page
      .getByLabel('Upload a file')
      .setInputFiles({ name: 'drawn.exe', mimeType: 'application/x-msdownload', buffer: svg })
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Search').fill('drawn')
    await page.getByRole('button', { name: 'Apply' }).click()
    await expect.poll(() => page.getByRole('img').count()).toBe(0)
    await page.getByRole('button', { name: 'Delete drawn.txt' }).click()
    await page.getByText('Nothing here yet.').waitFor()
    expect((await project.admin.get('/media')).data.map(({ filename }: any) => filename)).toEqual(['seen.png'])
  })

  test('the trail is verified, and a broken one is said to be', async () => {
    await page.goto(`${base}/verify/audit`)
    await page.getByRole('button', { name: 'Verify' }).click()
    await page.getByText(/^The trail is whole: \d+ rows checked/).waitFor()
    await project.sql(`update app.audit_events set status = 500`)
    await page.getByRole('button', { name: 'Verify' }).click()
    await page.getByText(/^The trail is broken at [0-9a-f-]{36}/).waitFor()
    expect(await page.locator('.refusal').count()).toBe(1)
  })

  test('no page breaks a rule of WCAG, light and dark, nor is wider than a phone', { timeout: 240_000 }, async () => {
    const narrow = await browser.newContext({ viewport: { width: 375, height: 700 }, colorScheme: 'dark' })
    const small = await signedIn(narrow)
    const items: Record<string, string> = {
      'user/timeline': user.id,
      'leaderboard/live': board.key,
      'flag/who': flag.key,
      'webhook/deliveries': crypto.randomUUID(),
      'collection/rows': 'notes',
    }
    const registry = await readFile(join(root, 'console/src/pages.ts'), 'utf8')
    const handMade = [...registry.matchAll(/path: '([^']+)'/g)].map(([, path = '']) => path)
    expect(handMade.length).toBeGreaterThan(10)
    const paths = [
      '',
      'users',
      'streaks',
      ...handMade.map((path) => `${path}${items[path] ? `?item=${items[path]}` : ''}`),
    ]
    const wrong: unknown[] = []
    for (const path of paths)
      for (const one of [page, small]) {
        await one.goto(`${base}/${path}`)
        await one.getByRole('main').getByRole('heading', { level: 1 }).waitFor()
        // what the page asks for has come
        await one.waitForLoadState('networkidle')
        await one.evaluate(axe.source)
        const { violations } = (await one.evaluate(
          `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })`,
        )) as axe.AxeResults
        wrong.push(...violations.map(({ id, nodes }) => [path, id, nodes[0]?.html]))
        if (one === small)
          expect(await one.evaluate('document.documentElement.scrollWidth'), path).toBeLessThanOrEqual(375)
      }
    expect(wrong).toEqual([])
    await narrow.close()
  })

  test('nothing of this broke the policy of the page, or threw', () => {
    expect(complaints).toEqual([])
  })
}
