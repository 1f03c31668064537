import { z } from 'zod'
import { administrator, appOrUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { data, Json, NotModified, Text, Uuid } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const ValueType = z.enum(['string', 'number', 'boolean', 'json'], 'must be string, number, boolean or json')

const Condition = z.looseObject({
  segment_id: Uuid.nullish(),
  percentage: z.number('must be a number from 0 to 100').min(0).max(100).nullish(),
  value: Json,
})
const Conditions = z.array(Condition).max(100, 'must be a list of at most 100')
const description = Text(2000).nullable()

const ConfigKey = answer('config_key_json', {
  value: Json,
  default_value: Json,
  conditions: z.array(z.looseObject({ value: Json })),
})

const read = async ({ request, call }: HandlerContext) => {
  const reply = await call('config_values', { if_none_match: request.headers['if-none-match'] })
  return reply.status === 304 ? { ...reply, body: '' } : reply
}

const notFound = { 404: ['NOT_FOUND'] }

const configForm: Form = {
  Basics: {
    key: ['Key', 'The name in code, such as `lesson_length`. It never changes.'],
    description: true,
  },
  Value: {
    value_type: ['Type', 'What kind of value it is.'],
    value: ['Value', 'What apps get, unless a condition says something else.'],
    conditions: ['Conditions', 'Other values for some users: the first that matches wins.'],
  },
}

export const config = area({
  stem: 'config',
  title: 'Remote config',
  part: 'Data',
  about: 'Settings that an app reads at run time.',
  codes: 'by area',
  words: {
    'conditions.segment_id': ['Segment', 'Users who are in this segment.', { unset: 'All users' }],
    'conditions.percentage': ['Share of users', 'In percent, 0 to 100.', { unset: 'All of them' }],
    'conditions.value': ['Value', 'What these users get.'],
  },
  routes: [
    ...group('/client/config', appOrUser, [
      route('GET /', 'Every key with its value for the caller', {
        handle: read,
        description: 'Without a user each key has its default. 304 when `If-None-Match` matches the current ETag.',
        headers: { 'If-None-Match': z.string().optional() },
        replies: { 200: data(z.record(z.string(), Json)), 304: NotModified },
      }),
    ]),
    ...group('/admin/projects/:projectId/config', administrator, [
      route('POST /', 'Create or replace a key', {
        form: configForm,
        defaultsOf: 'config_key',
        call: 'config_key_put',
        operationId: 'createConfigKey',
        description: 'Omitted fields get their defaults. `version` counts changes of `value`.',
        body: z.object({
          key: z
            .string()
            .regex(/^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}$/, 'must match ^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}$'),
          value: Json,
          value_type: ValueType.optional(),
          description: description.optional(),
          conditions: Conditions.optional(),
        }),
        example: { key: 'lesson_length', value: 10, value_type: 'number', conditions: [{ percentage: 20, value: 15 }] },
        // any JSON: a string must not be taken for the text of other JSON
        args: ({ body }) => ({ value: JSON.stringify(body['value']) }),
        replies: { 201: data(ConfigKey) },
        failure: 'SET_FAILED',
      }),
      route('GET /', 'All keys, ordered by key', {
        call: 'config_key_list',
        operationId: 'listConfigKeys',
        replies: { 200: data(z.array(ConfigKey)) },
        failure: 'FETCH_FAILED',
      }),
      route('PATCH /:key', 'Change the given fields of a key', {
        form: configForm,
        call: 'config_key_update',
        operationId: 'updateConfigKey',
        body: z.object({ value: Json, description, conditions: Conditions }).partial(),
        patch: true,
        example: { value: 12 },
        replies: { 200: data(ConfigKey) },
      }),
      ...definitions('config_key', {
        id: { key: z.string() },
        refusals: { delete: notFound },
        summaries: {
          delete: 'Delete a key for good',
        },
      }),
    ]),
  ],
})
