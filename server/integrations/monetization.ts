import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { callControl, projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { connectionOf } from '#server/providers/monetization/connection.ts'
import { type CatalogConfig, ReadFailed, readLive } from '#server/providers/monetization/live.ts'

export const adoptable = ['entitlement', 'product', 'offering', 'paywall'] as const

/** The provider's credentials, which only workers may read from the database. */
const connectionFor = async (context: HandlerContext): Promise<CatalogConfig> => {
  const sealed = await context.call('monetization_connection', {}, { role: 'app_worker', readOnly: true })
  return connectionOf(context.services, projectIdOf(context), dataOf<string>(sealed))
}

const liveOf = async (context: HandlerContext, config: CatalogConfig) => {
  try {
    return await readLive(context.services, projectIdOf(context), config)
  } catch (error) {
    if (!(error instanceof ReadFailed)) throw error
    throw refusal(502, 'PROVIDER_READ_FAILED', `The subscription provider could not be read: ${error.message}.`, {
      status: error.status,
    })
  }
}

/** Reads the provider and answers by a function that holds what it has against the definitions. */
export const reading = (call: string) => async (context: HandlerContext) => {
  const config = await connectionFor(context)
  return context.call(call, { live: await liveOf(context, config) }, { readOnly: true })
}

export const plan = async (context: HandlerContext) => {
  const config = await connectionFor(context)
  const live = await liveOf(context, config)
  return context.call('monetization_plan', { live, rc_project_id: config.project_id }, { readOnly: true })
}

/** The definitions as far as they are read here. */
type Sent = Readonly<Record<string, unknown>> & {
  readonly offerings: readonly {
    readonly key: string
    readonly packages: readonly { readonly offering_key?: string }[]
  }[]
}

export const put = (context: HandlerContext) => {
  const { monetization } = context.body as { monetization: Sent }
  // the offering of a package is the one that it stands in
  const offerings = monetization.offerings.map((offering) => ({
    ...offering,
    packages: offering.packages.map((each) => ({ ...each, offering_key: each.offering_key ?? offering.key })),
  }))
  return context.call('monetization_definitions_put', { monetization: { ...monetization, offerings } })
}

type Named = { readonly object_type: string; readonly identifier: string }

const checkAdoptable = (objects: readonly Named[]): void => {
  objects.forEach(({ object_type }, at) => {
    if (object_type === 'package') {
      throw refusal(
        400,
        'PACKAGE_NOT_INDEPENDENTLY_ADOPTABLE',
        'A package is adopted with its offering: name the offering.',
        { field: `objects[${at}].object_type` },
      )
    }
    if (!adoptable.some((known) => known === object_type)) {
      const reason = `must be one of ${adoptable.join(', ')}`
      throw refusal(400, 'INVALID_BODY', `objects[${at}].object_type: ${reason}`, {
        field: `objects[${at}].object_type`,
        reason,
      })
    }
  })
}

export const adopt = async (context: HandlerContext) => {
  const { adopt_all = false, objects = [] } = context.body as { adopt_all?: boolean; objects?: Named[] }
  if (!adopt_all && objects.length === 0) {
    throw refusal(400, 'INVALID_BODY', 'Send adopt_all: true, or objects.', {
      field: 'objects',
      reason: 'must name at least one object',
    })
  }
  checkAdoptable(objects)
  const config = await connectionFor(context)
  return context.call('monetization_adopt', { live: await liveOf(context, config), adopt_all, objects })
}

type ApplyBody = { plan_hash: string; confirm?: string; allow_detach_live: boolean; reconcile: 'service' | 'adopt' }

/** The project's database computes the plan anew; control decides whether an apply starts, and stores its steps. */
export const apply = async (context: HandlerContext) => {
  const { plan_hash, confirm = null, allow_detach_live, reconcile } = context.body as ApplyBody
  const config = await connectionFor(context)
  if (!config.secret_api_key_write) {
    throw refusal(
      403,
      'WRITE_KEY_REQUIRED',
      'An apply needs secret_api_key_write in the config of the integration revenuecat.',
    )
  }
  const live = await liveOf(context, config)
  const options = { allow_detach_live, reconcile }
  // without those that have their default
  const stated = Object.fromEntries(
    Object.entries(options).filter(([name]) => Object.hasOwn(context.sent as object, name)),
  )
  const decided = dataOf<object>(
    await context.call(
      'monetization_decide',
      { live, rc_project_id: config.project_id, ...options },
      { readOnly: true },
    ),
  )
  return callControl(
    context,
    'monetization_apply_start',
    { plan_hash, confirm, decided, input: options, stated },
    { failure: 'APPLY_FAILED' },
  )
}
