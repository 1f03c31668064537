import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { area, route } from '#server/http/route.ts'
import { data, Json, JsonObject, Line, Text, Time, Uuid } from '#server/http/schemas.ts'

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

const Flow = z.strictObject({
  id: Uuid,
  name: z.string(),
  steps: z.array(Step),
  is_active: z.boolean(),
  created_at: Time,
  updated_at: Time,
})

const Progress = z.strictObject({
  app_user_id: Uuid,
  flow_id: Uuid,
  current_step: z.string().nullable(),
  completed_steps: z.array(z.string()),
  answers: JsonObject,
  status: z.enum(['in_progress', 'completed', 'skipped']),
  started_at: Time,
  completed_at: Time.nullable(),
  updated_at: Time,
})

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
const flows = '/admin/projects/:projectId/onboarding/flows' as const

export const onboarding = area({
  stem: 'onboarding',
  title: 'Onboarding',
  part: 'People',
  about: 'Steps that a new user goes through.',
  source: 'contract',
  routes: [
    route('GET /client/onboarding', {
      caller: endUser,
      summary: "The newest active flow, with the caller's progress",
      description: '`data` is null when no flow is active, `progress` before the start.',
      call: 'onboarding_get',
      replies: { 200: data(z.strictObject({ flow: Flow, progress: Progress.nullable() }).nullable()) },
    }),
    route('POST /client/onboarding/:flowId/start', {
      caller: endUser,
      summary: 'Start or restart a flow',
      call: 'onboarding_start',
      replies: { 201: data(Progress) },
    }),
    route('POST /client/onboarding/:flowId/advance', {
      caller: endUser,
      summary: 'Complete the current step and go to the next',
      description:
        'With a `step_id` that is no longer the current step, nothing changes, so that a repeated request skips nothing. `answers` are stored with the step.',
      body: z.object({ step_id: Text(128, 1).optional(), answers: Json.optional() }),
      example: { step_id: 'goal', answers: { goal: 'fluency' } },
      // any JSON: a string must not be taken for the text of other JSON
      args: ({ body }) => ({ answers: body['answers'] === undefined ? undefined : JSON.stringify(body['answers']) }),
      call: 'onboarding_advance',
      replies: { 200: data(Progress) },
    }),
    route('POST /client/onboarding/:flowId/skip', {
      caller: endUser,
      summary: 'Skip a flow',
      call: 'onboarding_skip',
      replies: { 200: data(Progress) },
    }),
    route('POST /client/onboarding/:flowId/complete', {
      caller: endUser,
      summary: 'Complete a flow',
      call: 'onboarding_complete',
      replies: { 200: data(Progress) },
    }),

    route(`POST ${flows}`, {
      caller: administrator,
      summary: 'Define a flow',
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
      call: 'onboarding_flow_create',
      replies: { 201: data(Flow) },
    }),
    route(`GET ${flows}`, {
      caller: administrator,
      summary: 'Flows, newest first',
      call: 'onboarding_flow_list',
      replies: { 200: data(z.array(z.strictObject({ id: Uuid, name: z.string(), is_active: z.boolean() }))) },
      failure: 'FETCH_FAILED',
    }),
    ...definitions('onboarding_flow', {
      path: '/onboarding/flows',
      id: ofFlow,
      row: Flow,
      refusals: { get: notFound, delete: notFound },
      failures: { delete: 'UPDATE_FAILED' },
      summaries: {
        get: 'A flow',
        delete: 'Delete a flow with the progress of its users',
      },
    }),
    route(`PATCH ${flows}/:flowId`, {
      caller: administrator,
      summary: 'Change a flow; users who are in it continue with the new steps',
      body: z.object({ name: Line(200, 1), steps: Steps, is_active: z.boolean() }).partial(),
      patch: true,
      example: { is_active: false },
      call: 'onboarding_flow_update',
      replies: { 200: data(Flow) },
    }),
    route('GET /admin/projects/:projectId/onboarding/stats', {
      operationId: 'getOnboardingStats',
      caller: administrator,
      stale: true,
      summary: 'How many users started, completed and skipped each flow',
      call: 'onboarding_stats',
      replies: { 200: data(z.array(Stats)) },
      failure: 'FETCH_FAILED',
    }),
  ],
})
