// Templates of mail: their marks, versions, languages, and the built-in ones.
import { expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { templatesOf } from '#test/support/mail_templates.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { newEmail } from '#test/support/sign_in.ts'

const harness = await startHarness()
const project = await harness.project()

const define = templatesOf(project)
const send = (fields: object, on: Project = project) => on.admin.post('/email/send', fields)
const get = async (id: string) => (await project.admin.get(`/email/messages/${id}`)).data

test('count their versions by content, and check their marks', async () => {
  const template = await define()
  const patch = (fields: object) => project.admin.patch(`/email/templates/${template.key}`, fields)
  expect((await patch({ name: 'Renamed' })).data.version).toBe(1)
  expect((await patch({ subject: 'Hi' })).data.version).toBe(2)
  expect((await patch({ subject: 'Hi' })).data.version).toBe(2)
  expect((await patch({ locales: { de: { subject: 'Hallo' } } })).data.version).toBe(3)
  for (const [fields, field] of [
    [{ html: '{{#if a}}' }, 'html'],
    [{ text: '{{ a b }}' }, 'text'],
    [{ subject: '{{' }, 'subject'],
    [{ html: '{{a}}'.repeat(501) }, 'html'],
    [{ html: null, text: null }, 'html'],
    [{ locales: { 'not a locale': {} } }, 'locales'],
    [{ locales: { de: 'x' } }, 'locales.de'],
    [{ locales: { de: { body: 'x' } } }, 'locales.de'],
    [{ locales: { de: { html: 1 } } }, 'locales.de'],
    [{ locales: { de: { subject: '' } } }, 'locales.de.subject'],
    [{ locales: { de: { text: '{{' } } }, 'locales.de.text'],
    [{ locales: Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`aa-${100 + n}`, {}])) }, 'locales'],
    [{ locales: { de: { html: 'x'.repeat(800_000) } } }, 'locales'],
    [{ category: 'No' }, 'category'],
    [{ subject: '{{unsubscribe_url}}' }, 'subject'],
  ] as const)
    expectInvalid(await patch(fields), field)
  expect((await patch({})).data.version).toBe(3)
})

test('a message of sign-in must say its secret, in the content and not in the subject', async () => {
  const on = await harness.project()
  const base = { key: 'auth.otp', name: 'Code', subject: 'Code', text: '{{code}}' }
  const post = (fields: object) => on.admin.post('/email/templates', { ...base, ...fields })
  expectInvalid(await post({ subject: 'Your code {{code}}' }), 'subject')
  expectInvalid(await post({ text: 'no code' }), 'text')
  expectInvalid(await post({ html: '{{link}} {{code}}' }), 'html')
  expectInvalid(await post({ text: '{{code}} {{name}}' }), 'text')
  expectInvalid(await post({ locales: { de: { text: 'nichts' } } }), 'locales.de.text')
  expect((await post({ text: '{{code}} {{name|you}} {{brand}}' })).status).toBe(201)
})

test('render escaped in HTML, raw in text, on one line in the subject', async () => {
  const { key } = await define({
    subject: 'For {{user.name}}',
    html: `<a title="{{user.name}}">{{n}} {{yes}} {{gone|a <b>}}</a>`,
    text: '{{user.name}} {{ gone | a <b> }}',
  })
  const name = `<script>"&'\r\nBcc: x@example.org`
  const shown = await project.admin.post(`/email/templates/${key}/preview`, {
    variables: { user: { name }, n: 1.5, yes: true },
  })
  expect(shown.data).toEqual({
    subject: `For <script>"&' Bcc: x@example.org`,
    html: `<a title="&#60;script&#62;&#34;&#38;&#39;\r\nBcc: x@example.org">1.5 true a &#60;b&#62;</a>`,
    text: `${name} a <b>`,
    locale: null,
    version: 1,
  })
})

test('name every variable that is missing; an object, a list and null are no value', async () => {
  const { key } = await define({ subject: '{{a}} {{b.c}}', html: '{{d}}{{e}}', text: '{{a}}{{f|x}}' })
  const answer = await project.admin.post(`/email/templates/${key}/preview`, {
    variables: { b: { c: {} }, d: [1], e: null },
  })
  expectRefusal(answer, 400, 'TEMPLATE_VARIABLE_MISSING')
  expect(answer.error?.details).toEqual({ variables: ['a', 'b.c', 'd', 'e'] })
  const to = newEmail()
  expectRefusal(await send({ to, template_key: key }), 400, 'TEMPLATE_VARIABLE_MISSING')
  expect(await project.sql('select from app.email_messages where to_address = $1', [to])).toEqual([])
})

test('a value in many marks makes no message of more than 1 MB', async () => {
  const { key } = await define({ text: '{{a}}'.repeat(400), html: null, subject: 'x' })
  const preview = (a: string) => project.admin.post(`/email/templates/${key}/preview`, { variables: { a } })
  expectInvalid(await preview('x'.repeat(3000)), 'variables')
  expect((await preview('x'.repeat(2000))).data.text).toHaveLength(800_000)
})

test('come in the first locale that there is: the user’s, then the request’s, then the default', async () => {
  const { key } = await define({
    subject: 'Default',
    text: 'default',
    html: null,
    locales: { de: { subject: 'Deutsch', text: 'deutsch' }, 'pt-BR': { subject: 'Brasil' } },
  })
  const preview = async (body: object, headers = {}) =>
    (await project.admin.with(headers).post(`/email/templates/${key}/preview`, body)).data
  expect(await preview({})).toMatchObject({ subject: 'Default', locale: null })
  expect(await preview({ locale: 'de-CH' })).toMatchObject({ subject: 'Deutsch', text: 'deutsch', locale: 'de' })
  expect(await preview({ locale: 'PT-br' })).toMatchObject({ subject: 'Brasil', text: 'default', locale: 'pt-br' })
  expect(await preview({ locale: 'pt' })).toMatchObject({ subject: 'Default', locale: null })
  const accept = { 'accept-language': 'fr;q=0.9, en;q=0, *;q=0.1, de-AT;q=0.5' }
  expect(await preview({}, accept)).toMatchObject({ subject: 'Deutsch' })
  const user = await project.user()
  const email = newEmail()
  await project.sql(`update app.users set email = $2, properties = '{"locale": "pt-BR"}' where id = $1`, [
    user.id,
    email,
  ])
  const sent = await project.admin.with(accept).post('/email/send', { user_id: user.id, template_key: key })
  expect(await get(sent.data.id)).toMatchObject({ subject: 'Brasil', locale: 'pt-br', to: email, user_id: user.id })
})

test('built-in ones exist in six languages, in HTML and text, and are replaced by key', async () => {
  const on = await harness.project()
  const keys = [
    'auth.magic_link',
    'auth.magic_token',
    'auth.otp',
    'auth.link_code',
    'auth.delete_code',
    'developer.invite',
  ]
  const subjects = new Set<string>()
  for (const key of keys) {
    for (const locale of ['en', 'de', 'es', 'fr', 'pt', 'ja']) {
      const { data, text } = await on.admin.post(`/email/templates/${key}/preview`, {
        locale,
        variables: { brand: 'A & B', code: '123456', link: 'https://example.com/?a=1&b=2' },
      })
      expect(data?.locale, text).toBe(locale)
      expect(data.html).toContain(`<html lang="${locale}">`)
      expect(data.html).toContain('A &#38; B')
      expect(data.text).toContain('A & B')
      const secret = /otp|code/.test(key) ? '123456' : 'https://example.com/?a=1&b=2'
      expect(data.text).toContain(secret)
      expect(data.html).toContain(secret.replace('&', '&#38;'))
      expect(data.html + data.text).not.toContain('{{')
      subjects.add(`${key} ${data.subject}`)
    }
  }
  expect(subjects.size).toBe(36)
  await define({ key: 'auth.otp', subject: 'Mine {{brand}}', html: null, text: 'mine {{code}}' }, on)
  const preview = async (locale: string) =>
    (await on.admin.post('/email/templates/auth.otp/preview', { locale, variables: { brand: 'B', code: '1' } })).data
  expect(await preview('en')).toMatchObject({ subject: 'Mine B', text: 'mine 1', html: null, version: 1 })
  // a language that the project's template does not have is the built-in one's
  expect(await preview('fr')).toMatchObject({ subject: 'Votre code de connexion à B', version: 0 })
  expect(await preview('nl')).toMatchObject({ subject: 'Mine B' })
  expectRefusal(await on.admin.post('/email/templates/nothing/preview', {}), 404, 'NOT_FOUND')
})
