import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { fieldsOf } from '#server/http/interface.ts'
import { acceptedArray } from '#server/http/languages.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, JsonObject, Time, Uuid } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'
import { Category, emailWords, TemplateKey } from '#server/routes/email/shapes.ts'

const Locale = z
  .string()
  .regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/, 'must be a locale such as de or pt-BR')
  .meta({ maxLength: 30 })

const fields = fieldsOf('email_template', { category: Category })
const Template = z.strictObject({
  id: Uuid,
  key: z.string(),
  ...fields,
  version: z.int(),
  created_at: Time,
  updated_at: Time,
})

const templateForm: Form = {
  Basics: {
    name: ['Name', 'For your team.'],
    key: [
      'Key',
      'The name in calls, such as `receipt`; that of a built-in one replaces it. It never changes.',
      { from: 'name' },
    ],
    category: ['Category', 'What users can unsubscribe from, such as `news`; transactional mail always goes out.'],
  },
  Content: {
    subject: ['Subject', 'One line; marks such as `{{name|friend}}` are filled in.'],
    html: ['HTML', 'The message for mail programs that show HTML.'],
    text: ['Text', 'The message as plain text.'],
    locales: ['Translations', 'Subject, html and text by language, such as `{"de": {"subject": "Hallo"}}`.'],
  },
}

export const emailTemplates = area({
  stem: 'email',
  title: 'Email',
  words: emailWords,
  routes: [
    ...group('/admin/projects/:projectId/email', administrator, [
      ...definitions('email_template', {
        form: templateForm,
        path: '/templates',
        fixed: { key: TemplateKey },
        fields,
        row: Template,
        id: { key: z.string() },
        refusals: { delete: { 409: ['CONFLICT'] } },
        example: {
          create: {
            key: 'receipt',
            name: 'Receipt',
            subject: 'Your receipt, {{name|friend}}',
            html: '<p>You paid {{amount}}.</p>',
            text: 'You paid {{amount}}.',
            locales: { de: { subject: 'Ihre Quittung', text: 'Sie haben {{amount}} bezahlt.' } },
          },
          update: { subject: 'Thank you, {{name|friend}}' },
        },
        summaries: {
          create: 'Define a template, or replace a built-in one; at most 200',
          list: 'Templates of the project, newest first',
          get: 'A template',
          update: 'Change a template; messages that are queued keep the former content',
          delete: 'Delete a template; a built-in one of its key is used again',
        },
      }),
      route(
        'POST /templates/:key/preview',
        'A template with variables, as a message would have it; built-in ones too',
        {
          call: 'email_template_preview',
          readOnly: true,
          body: z.object({ variables: JsonObject.optional(), locale: Locale.optional() }),
          example: { variables: { brand: 'Orchard', code: '123456', link: 'https://example.com' } },
          args: ({ body, request }) => ({
            variables: body['variables'] === undefined ? undefined : JSON.stringify(body['variables']),
            accepted: acceptedArray(request),
          }),
          replies: {
            200: data(
              z.strictObject({
                subject: z.string(),
                html: z.string().nullable(),
                text: z.string().nullable(),
                locale: z.string().nullable(),
                version: z.int(),
              }),
            ),
          },
        },
      ),
    ]),
  ],
})
