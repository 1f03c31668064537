import { z } from 'zod'
import { argumentsOf } from '#server/http/arguments.ts'
import { administrator, appOrUser } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { Deleted, data, JsonObject, Moment, NotModified, Page, page, Text, Time, Uuid } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const Status = z.enum(['draft', 'published', 'scheduled'], 'must be draft, published or scheduled')
const Name = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, 'must match ^[A-Za-z0-9_.-]{1,64}$')
const VersionNumber = z.int('must be the number of a version').min(1).max(2_147_483_647)
const Fields = JsonObject

const Locale = z.strictObject({
  status: Status,
  fields: JsonObject,
  version: z.int(),
  published_version: z.int().nullable(),
  published_at: Time.nullable(),
  publish_at: Time.nullable(),
})
const Entry = answer('content_json', { locales: z.record(z.string(), Locale), tags: z.array(z.string()) })
const Version = answer('content_version_json', {
  author: z.strictObject({ type: z.string(), id: z.string().nullable() }),
})
const Shown = z.strictObject({
  id: Uuid,
  key: z.string(),
  content_type: z.string(),
  locale: z.string(),
  fallback: z.boolean(),
  fields: JsonObject,
  tags: z.array(z.string()),
  published_at: Time.nullable(),
  version: z.int(),
})

const FieldType = z.enum(
  ['text', 'markdown', 'number', 'boolean', 'date', 'media', 'reference', 'json'],
  'must be text, markdown, number, boolean, date, media, reference or json',
)
const Field = z.object({
  name: z.string().regex(/^[A-Za-z][A-Za-z0-9_]{0,63}$/, 'must match ^[A-Za-z][A-Za-z0-9_]{0,63}$'),
  type: FieldType,
  required: z.boolean().default(false),
  localized: z.boolean().default(true),
})
const Type = answer('content_type_json', { fields: z.array(z.strictObject(Field.shape)) })

const changeable = {
  default_locale: z.string(),
  tags: z.array(Text(64, 1)).max(50, 'must have at most 50 items'),
  segment_id: Uuid.nullable(),
  starts_at: Moment.nullable(),
  ends_at: Moment.nullable(),
  sort_order: z.int('must be a whole number').min(-2_147_483_648).max(2_147_483_647),
}

const search = Text(200)
const cached = { 'If-None-Match': z.string().optional(), 'Accept-Language': z.string().optional() }

const read = (name: string) => async (context: HandlerContext) => {
  const { headers } = context.request
  const reply = await context.call(name, {
    ...argumentsOf(context.route, context),
    if_none_match: headers['if-none-match'],
    accept_language: headers['accept-language'],
  })
  return reply.status === 304 ? { ...reply, body: '' } : reply
}

const entryForm: Form = {
  Basics: {
    key: ['Key', 'The name in code, such as `welcome`: letters, digits, _, . and -. It never changes.'],
    content_type: ['Type', 'What kind of entry it is, such as `article`. It never changes.'],
    default_locale: [
      'Default language',
      'The language that stands in for missing ones, such as `en` or `pt-BR`.',
      { default: 'en' },
    ],
    fields: ['Fields', 'The texts and values in the default language.'],
  },
  'Who sees it, and when': {
    tags: true,
    segment_id: true,
    starts_at: ['From', 'Apps do not see it before.', { unset: 'At once' }],
    ends_at: ['Until', 'Apps do not see it from then on.', { unset: 'Always' }],
    sort_order: ['Order', 'Lists begin with the lowest number.', { default: 0 }],
  },
}

export const content = area({
  stem: 'content',
  title: 'Content',
  part: 'Content',
  about: 'Texts in many languages, with versions and publication at a time.',
  words: {
    fields: ['Fields', 'The texts and values by their names, whole: what is left out is gone in the new version.'],
    version: ['Version', 'The number of a version of this language.', { unset: 'The newest' }],
    publish_at: ['Publish at', 'When it is published.', { unset: 'At once' }],
    locale: ['Language', 'A tag such as `en` or `pt-BR`.'],
    'fields.name': ['Name', 'The name of the field, such as `title`.'],
    'fields.type': ['Type', 'What its value is.'],
    'fields.required': ['Required', 'The default language must have it.'],
    'fields.localized': ['Translated', 'Off: every language shows the value of the default language.'],
  },
  routes: [
    ...group('/client/content', appOrUser, [
      route('GET /', 'The published entries that the caller may see, each in their language', {
        handle: read('content_entries'),
        calls: ['content_entries'],
        description:
          'The language is `locale`, else the user property `locale`, else `Accept-Language`; missing fields come from the next language. By `sort_order`, then newest first.',
        query: {
          ...Page,
          content_type: search.optional(),
          tag: search.optional().describe('Entries with this tag'),
          locale: search.optional().describe('A tag such as `pt-BR`'),
        },
        headers: cached,
        replies: { 200: page(Shown), 304: NotModified },
      }),
      route('GET /:idOrKey', 'A published entry in the language of the caller', {
        handle: read('content_entry'),
        calls: ['content_entry'],
        description:
          'With `preview_token` the newest versions, whatever is published. 304 when `If-None-Match` matches the current ETag.',
        query: {
          locale: search.optional().describe('A tag such as `pt-BR`'),
          preview_token: search.optional(),
        },
        headers: cached,
        replies: { 200: data(Shown), 304: NotModified },
      }),
    ]),
    ...group('/admin/projects/:projectId/content-types', administrator, [
      route('GET /', 'Content types that have a schema, by name', {
        call: 'content_types',
        query: Page,
        replies: { 200: page(Type) },
      }),
      route('GET /:type', 'The schema of a content type', {
        call: 'content_type_get',
        description: '404 where the type has none, and so takes any fields.',
        replies: { 200: data(Type) },
      }),
      route('PUT /:type', 'Set the schema of a content type', {
        call: 'content_type_put',
        description:
          'Saves of the type are checked against it from then on; what is stored stays. An empty list lifts the schema.',
        body: z.object({ fields: z.array(Field).max(100, 'must be a list of at most 100') }),
        words: { fields: ['Fields', 'The fields that entries of the type have, at most 100.'] },
        example: { fields: [{ name: 'title', type: 'text', required: true }] },
        replies: { 200: data(Type) },
      }),
    ]),
    ...group('/admin/projects/:projectId/content', administrator, [
      route('POST /', 'Add an entry; at most 10,000', {
        form: entryForm,
        call: 'content_create',
        description: '`fields` become version 1 of the default language, a draft.',
        body: z.object({
          key: Name,
          content_type: Name,
          ...z.object({ ...changeable, fields: Fields }).partial().shape,
        }),
        patch: true,
        example: { key: 'welcome', content_type: 'banner', fields: { title: 'Welcome' } },
        replies: { 201: data(Entry) },
      }),
      route('GET /', 'Entries with the newest save of each language', {
        call: 'content_list',
        description:
          'By `sort_order`, then newest first. `status`: one of its languages has it, with `locale` that one. `search`: a part of the key or of a text.',
        query: {
          ...Page,
          content_type: search.optional(),
          tag: search.optional().describe('Entries with this tag'),
          status: Status.optional(),
          locale: search.optional().describe('A tag such as `pt-BR`'),
          search: search.optional(),
        },
        replies: { 200: page(Entry) },
      }),
      route('GET /:idOrKey', 'An entry with the newest save of each language', {
        call: 'content_get',
        replies: { 200: data(Entry) },
      }),
      route('PATCH /:idOrKey', 'Change the given properties of an entry', {
        form: entryForm,
        call: 'content_update',
        description: 'Fields are changed by saving a language.',
        body: z.object(changeable).partial(),
        patch: true,
        example: { tags: ['home'] },
        replies: { 200: data(Entry) },
      }),
      route('DELETE /:idOrKey', 'Delete an entry with its languages and versions', {
        call: 'content_delete',
        replies: { 200: Deleted },
      }),
      route('PUT /:idOrKey/locales/:locale', 'Save a language of an entry as a new version', {
        call: 'content_locale_put',
        description:
          'It is a draft until it is published. The newest 50 versions of a language are kept. With `base_version` nothing is saved, 409 `CONFLICT`, where the newest version is another one.',
        body: z.object({ fields: Fields, base_version: z.int().min(0).max(2_147_483_647).nullish() }),
        words: {
          base_version: [
            'Base version',
            'The version that these fields were made from; 0 where there was none.',
            { unset: 'Any' },
          ],
        },
        example: { fields: { title: 'Willkommen' } },
        replies: { 200: data(Version) },
      }),
      route('POST /:idOrKey/locales/:locale/publish', 'Publish a language, at once or at a time', {
        call: 'content_publish',
        operationId: 'publishContent',
        description: 'The newest version, or `version`. Later saves do not change what is scheduled.',
        body: z.object({ version: VersionNumber.nullish(), publish_at: Moment.nullish() }),
        example: { publish_at: '2027-01-01T08:00:00Z' },
        replies: { 200: data(Entry) },
      }),
      route('POST /:idOrKey/locales/:locale/unpublish', 'Cancel the schedule of a language, or withdraw it', {
        call: 'content_unpublish',
        operationId: 'unpublishContent',
        replies: { 200: data(Entry) },
      }),
      route('GET /:idOrKey/versions', 'The versions of a language, newest first', {
        call: 'content_versions',
        query: { ...Page, locale: search.optional().describe('The default language where none is named') },
        replies: { 200: page(Version) },
      }),
      route('POST /:idOrKey/rollback', 'Save the fields of a former version as the newest one', {
        call: 'content_rollback',
        description: 'Publishes nothing.',
        body: z.object({ locale: z.string(), version: VersionNumber }),
        words: { version: ['Version', 'The number of the version to go back to.'] },
        example: { locale: 'en', version: 1 },
        replies: { 200: data(Entry) },
      }),
      route('POST /:idOrKey/preview-token', 'A token that shows the newest versions of an entry for an hour', {
        call: 'content_preview_token',
        replies: { 201: data(z.strictObject({ token: z.string(), expires_in: z.literal(3600) })) },
      }),
    ]),
  ],
})
