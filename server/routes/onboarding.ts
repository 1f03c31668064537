import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, Json, JsonObject, Line, Text, Uuid } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const StepType = z.enum(
  ['info', 'question', 'permission', 'action', 'paywall', 'input', 'custom'],
  'must be info, question, permission, action, paywall, input or custom',
)

/** The fields of a step; SQL validates it, and adds missing fields. */
const NewStep = z.looseObject({
  id: Text(128, 1).nullish(),
  type: StepType.optional(),
  title: Line(200).nullish(),
  description: Text(2000).nullish(),
  config: JsonObject.optional(),
  skippable: z.boolean().optional(),
  segment_id: Uuid.nullish(),
})
const Step = z.looseObject({
  id: z.string(),
  type: StepType,
  title: z.string().nullable(),
  description: z.string().nullable(),
  config: JsonObject,
  skippable: z.boolean(),
  segment_id: Uuid.nullable(),
})
const Steps = z.array(NewStep).max(100, 'must be a list of at most 100')

const Flow = answer('onboarding_flow_json', { steps: z.array(Step) })

const Progress = answer('onboarding_progress_json', { completed_steps: z.array(z.string()), answers: JsonObject })

const Stats = z.strictObject({
  flow_id: Uuid,
  flow_name: z.string(),
  total_started: z.int(),
  total_completed: z.int(),
  total_skipped: z.int(),
  completion_rate: z.number().min(0).max(1).nullable(),
})

const ofFlow = { flowId: Uuid }
const notFound = { 404: ['NOT_FOUND'] }

const flowForm: Form = {
  Basics: { name: true, is_active: ['Active', 'New users get the newest active flow.'] },
  Steps: { steps: ['Steps', 'What the user sees, in this order.'] },
}

export const onboarding = area({
  stem: 'onboarding',
  title: 'Onboarding',
  part: 'People',
  about: 'Steps that a new user goes through.',
  codes: 'by area',
  words: {
    'steps.id': ['Id', 'The name of the step in code.', { unset: 'One is made' }],
    'steps.type': ['Kind', 'Text, a question, a permission, an action, a paywall, a field, or one of your own.'],
    'steps.title': ['Title', 'What the user reads first.'],
    'steps.config': ['Settings', 'As the kind of step takes them.'],
    'steps.skippable': ['Can be skipped', 'Whether the user may go on without it.', { default: true }],
    step_id: ['Step', 'The id of the step that is done.', { unset: 'The current one' }],
    answers: ['Answers', 'What the user said, any JSON.'],
  },
  routes: [
    ...group('/client/onboarding', endUser, [
      route('GET /', "The newest active flow, with the caller's progress", {
        call: 'onboarding_get',
        description: '`data` is null when no flow is active, `progress` before the start.',
        replies: { 200: data(z.strictObject({ flow: Flow, progress: Progress.nullable() }).nullable()) },
      }),
      route('POST /:flowId/start', 'Start or restart a flow', {
        call: 'onboarding_start',
        replies: { 201: data(Progress) },
      }),
      route('POST /:flowId/advance', 'Complete the current step and go to the next', {
        call: 'onboarding_advance',
        description:
          'With a `step_id` that is no longer the current step, nothing changes, so that a repeated request skips nothing. `answers` are stored with the step.',
        body: z.object({ step_id: Text(128, 1).optional(), answers: Json.optional() }),
        example: { step_id: 'goal', answers: { goal: 'fluency' } },
        // any JSON: a string must not be taken for the text of other JSON
        args: ({ body }) => ({ answers: body['answers'] === undefined ? undefined : JSON.stringify(body['answers']) }),
        replies: { 200: data(Progress) },
      }),
      route('POST /:flowId/skip', 'Skip a flow', { call: 'onboarding_skip', replies: { 200: data(Progress) } }),
      route('POST /:flowId/complete', 'Complete a flow', {
        call: 'onboarding_complete',
        replies: { 200: data(Progress) },
      }),
    ]),
    ...group('/admin/projects/:projectId/onboarding', administrator, [
      route('POST /flows', 'Define a flow', {
        call: 'onboarding_flow_create',
        form: flowForm,
        body: z.object({ name: Line(200, 1), steps: Steps, is_active: z.boolean().optional() }),
        example: {
          name: 'First steps',
          steps: [
            { id: 'welcome', type: 'info', title: 'Welcome' },
            {
              id: 'goal',
              type: 'question',
              title: 'Your goal',
              config: { options: [{ id: 'fluency', label: 'Fluency' }] },
            },
          ],
        },
        replies: { 201: data(Flow) },
      }),
      route('GET /flows', 'Flows, newest first', {
        call: 'onboarding_flow_list',
        replies: { 200: data(z.array(z.strictObject({ id: Uuid, name: z.string(), is_active: z.boolean() }))) },
        failure: 'FETCH_FAILED',
      }),
      ...definitions('onboarding_flow', {
        path: '/flows',
        id: ofFlow,
        row: Flow,
        refusals: { get: notFound, delete: notFound },
        failures: { delete: 'UPDATE_FAILED' },
        summaries: {
          get: 'A flow',
          delete: 'Delete a flow with the progress of its users',
        },
      }),
      route('PATCH /flows/:flowId', 'Change a flow; users who are in it continue with the new steps', {
        form: flowForm,
        call: 'onboarding_flow_update',
        body: z.object({ name: Line(200, 1), steps: Steps, is_active: z.boolean() }).partial(),
        patch: true,
        example: { is_active: false },
        replies: { 200: data(Flow) },
      }),
      route('GET /stats', 'How many users started, completed and skipped each flow', {
        call: 'onboarding_stats',
        operationId: 'getOnboardingStats',
        stale: true,
        replies: { 200: data(z.array(Stats)) },
        failure: 'FETCH_FAILED',
      }),
    ]),
  ],
})
