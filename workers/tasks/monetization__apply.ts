import { dataOf } from '#server/database/database.ts'
import { connectionOf } from '#server/providers/monetization/connection.ts'
import { type CatalogConfig, type Live, ReadFailed, readLive } from '#server/providers/monetization/live.ts'
import { objectOf, type Step } from '#server/providers/monetization/steps.ts'
import { performStep, WriteFailed } from '#server/providers/monetization/writer.ts'
import type { Services } from '#server/services.ts'
import { Stopped, sleepUntil } from '#server/stopping.ts'
import { type OperationContext, OperationFailed, runOperation, waits } from '#workers/operation.ts'
import { job } from '#workers/task.ts'

type Input = { project_id: string; allow_detach_live: boolean; reconcile: 'service' | 'adopt'; refused: unknown[] }
type Taken = {
  steps: Step[]
  additive: number
  is_checked: boolean
  is_confirmed: boolean
  position: number
  begun: number | null
  run: number
  waiting_hash: string | null
  plan_hash: string
}
type Decided = { plan_hash: string; gated: Step[] }
type Run = {
  readonly context: OperationContext
  readonly services: Services
  readonly input: Input
  readonly config: CatalogConfig
  readonly taken: Taken
  readonly read: () => Promise<Live>
  readonly control: <T>(name: string, args: object) => Promise<T>
  readonly mark: (mark: { is_checked?: boolean; begun?: number; done?: number }) => Promise<void>
  readonly sleep: (milliseconds: number) => Promise<void>
}

const changed = () =>
  new OperationFailed(
    'PLAN_CHANGED: the definitions or the provider have changed since the plan. Nothing more was done.',
  )

const decide = ({ context, input, config }: Run, live: Live) =>
  context.call<Decided>('monetization_decide', {
    live,
    rc_project_id: config.project_id,
    allow_detach_live: input.allow_detach_live,
    reconcile: input.reconcile,
  })

const namesOf = (steps: readonly Step[]) =>
  JSON.stringify(steps.map((step) => [step.op, step.object_type, step.identifier]))

/** Remembers as applied what the first `done` steps have touched. */
const record = async ({ context, taken }: Run, live: Live, done: number) => {
  const steps = taken.steps.slice(0, done)
  const pushed = steps.filter(({ object_type }) => object_type === 'store_product').map((step) => objectOf(step)[1])
  await context.call('monetization_record', { live, touched: steps.map(objectOf), pushed })
}

/** Performs the steps from the recorded position, and records each one before and after its call. */
const perform = async (run: Run, from: Live, until: number): Promise<void> => {
  const { services, input, config, taken, mark, read, sleep } = run
  let live = from
  for (let at = taken.position; at < until; at += 1) {
    await mark({ begun: at })
    live = await performStep(
      { services, projectId: input.project_id, config, read, sleep },
      live,
      taken.steps[at] as Step,
    )
    await mark({ done: at + 1 })
    taken.position = at + 1
  }
}

/** The plan must be the one that the developer saw; with reconcile=adopt what has drifted is then declared as it is. */
const check = async (run: Run, live: Live): Promise<void> => {
  if (run.taken.is_checked) return
  if ((await decide(run, live)).plan_hash !== run.taken.plan_hash) throw changed()
  await run.mark({ is_checked: true })
}

const untilGated = async (run: Run): Promise<void> => {
  const { taken, input, context } = run
  const live = await run.read()
  await check(run, live)
  if (input.reconcile === 'adopt' && taken.position === 0) await context.call('monetization_adopt_drift', { live })
  await perform(run, live, taken.additive)
}

/** Before the first gated step: what remains must be what the developer saw, also after the wait. Whether the steps may run now. */
const mayGoOn = async (run: Run, live: Live): Promise<boolean> => {
  const { taken, control } = run
  const { plan_hash, gated } = await decide(run, live)
  if (namesOf(gated) !== namesOf(taken.steps.slice(taken.additive))) throw changed()
  if (taken.waiting_hash !== null && taken.waiting_hash !== plan_hash) throw changed()
  const { is_held, is_confirmed } = await control<{ is_held: boolean; is_confirmed: boolean }>(
    'monetization_apply_wait',
    {
      run: taken.run,
      waiting_hash: plan_hash,
    },
  )
  if (!is_held) throw new Superseded()
  return is_confirmed
}

/** The operation was ended from outside, or another worker has taken it: this one stops without a word. */
class Superseded extends Error {}

const apply = async (run: Run): Promise<unknown> => {
  const { taken, input } = run
  const isAmongGated = taken.position > taken.additive || (taken.begun ?? -1) >= taken.additive
  if (!isAmongGated) {
    await untilGated(run)
    const live = await run.read()
    await record(run, live, taken.additive)
    if (taken.steps.length > taken.additive && !(await mayGoOn(run, live))) return waits
  }
  if (taken.steps.length > taken.additive) {
    await perform(run, await run.read(), taken.steps.length)
    await record(run, await run.read(), taken.steps.length)
  }
  return {
    applied: taken.steps.map(({ op, object_type, identifier }) => ({ op, object_type, identifier })),
    refused: input.refused,
  }
}

/** What was done before a failure is remembered as applied; a provider that cannot be read then is read at the next apply. */
const recordBeforeFailure = async (run: Run): Promise<void> => {
  const live = await run.read().catch((error: unknown) => {
    if (error instanceof ReadFailed) return null
    throw error
  })
  if (live) await record(run, live, run.taken.position)
}

const failureOf = (error: unknown): OperationFailed | null => {
  if (error instanceof OperationFailed) return error
  if (error instanceof WriteFailed) return new OperationFailed(error.message)
  if (error instanceof ReadFailed) return new OperationFailed(`PROVIDER_READ_FAILED: ${error.message}.`)
  return null
}

const begin = async (services: Services, context: OperationContext): Promise<Run> => {
  const input = context.input as Input
  const control: Run['control'] = async (name, args) =>
    dataOf(
      await services.database.call(services.control, 'control_worker', { caller: 'worker' }, name, {
        operation_id: context.operationId,
        ...args,
      }),
    )
  const taken = await control<Taken>('monetization_apply_take', {})
  const config = connectionOf(services, input.project_id, await context.call<string>('monetization_connection', {}))
  const { asked } = services.stopping
  const sleep = async (milliseconds: number) => {
    await sleepUntil(milliseconds, asked)
    if (asked.aborted) throw new Stopped()
  }
  const mark: Run['mark'] = async (marked) => {
    if (asked.aborted) throw new Stopped()
    if (!(await control<boolean>('monetization_apply_mark', { run: taken.run, ...marked }))) throw new Superseded()
  }
  const read = () => readLive(services, input.project_id, config, { sleep })
  return { context, services, input, config, taken, read, control, mark, sleep }
}

/** Runs an apply from its recorded position. See docs/monetization.md. */
export const monetizationApply = job(
  'monetization__apply',
  (services, { operation_id = '' }) =>
    runOperation(services, operation_id, async (context) => {
      const run = await begin(services, context)
      try {
        return await apply(run)
      } catch (error) {
        if (error instanceof Superseded) return waits
        const failed = failureOf(error)
        if (!failed) throw error
        await recordBeforeFailure(run)
        throw failed
      }
    }),
  'background',
  { slots: 'outbound' },
)

/** Ends an apply that nobody has confirmed within 24 hours. */
export const monetizationExpire = job('monetization__expire', async (services, { operation_id = '' }) => {
  const args = { operation_id }
  await services.database.call(
    services.control,
    'control_worker',
    { caller: 'worker' },
    'monetization_apply_expire',
    args,
  )
})
