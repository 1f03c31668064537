import { exportPromotion, getOperation, getProject, importPromotion } from '../../sdk/src/generated/admin.ts'
import { isRefusal, type TrellisError } from '../../sdk/src/index.ts'
import type { Api } from './api.ts'
import type { Context } from './command.ts'
import { CliError, exits, filesError, usageError } from './exit.ts'
import { type Definitions, kindsHere, only, readFiles } from './files.ts'
import { projectFor, requireManifest } from './settings.ts'
import { didYouMean } from './similar.ts'

export type Op = {
  readonly op: string
  readonly kind: string
  readonly key: string
  readonly diff: Readonly<Record<string, readonly unknown[]>>
}
export type Blocked = { readonly kind: string; readonly key: string; readonly code: string; readonly reason: string }
export type Kept = { readonly kind: string; readonly key: string }
export type Plan = {
  readonly plan_hash: string
  readonly clean: boolean
  readonly ops: readonly Op[]
  readonly blocked: readonly Blocked[]
}
export type Exported = { readonly definitions: Definitions; readonly left_out: readonly Blocked[] }

export const exportOf = async ({ call }: Api, projectId: string): Promise<Exported> =>
  (await call(exportPromotion, { path: { projectId } })).data

/** The flag of the commands that may be limited to some kinds. */
export const kindFlag = {
  value: 'KINDS',
  about: 'These kinds of definitions alone, such as stores,leagues; the others are left as they are',
}

/** The kinds that `--kind` names, or null for all. */
export const kindsOf = (context: Context): readonly string[] | null => {
  const value = context.option('kind')
  if (value === undefined) return null
  const kinds = [...new Set(value.split(',').map((kind) => kind.trim()))]
  const wrong = kinds.find((kind) => !/^[a-z][a-z0-9_]{0,62}$/.test(kind))
  if (wrong !== undefined) throw usageError(`"${wrong}" is no kind of definitions.`, 'Kinds stand between commas.')
  return kinds
}

/** Refuses a kind that neither side has: a plural forgotten is not an empty folder. */
export const checkKinds = async (folder: string, kinds: readonly string[], there: Definitions): Promise<void> => {
  const known = [...new Set([...Object.keys(there), ...(await kindsHere(folder))])].sort()
  const unknown = kinds.find((kind) => !known.includes(kind))
  if (unknown === undefined) return
  throw usageError(
    `Neither the project nor the files have definitions of the kind ${unknown}.`,
    didYouMean(unknown, known) ?? (known.length > 0 ? `They have ${known.join(', ')}.` : undefined),
  )
}

type Document = { readonly version: 1; readonly definitions: Definitions; readonly left_out: [] }
type Applied = { readonly operation_id: string; readonly status: string }
type ImportBody = {
  readonly document: Document
  readonly prune?: boolean
  readonly plan_hash?: string
  readonly confirm?: string
  readonly kinds?: string[]
}
/** The files of this folder and the project that they are for. */
export type Local = {
  readonly project: { readonly id: string; readonly name: string }
  readonly document: Document
  readonly count: number
  /** The kinds that the plan is limited to, or null. */
  readonly kinds: readonly string[] | null
  readonly fileOf: (kind: string, key: string) => string | undefined
}

export const localOf = async (context: Context, { call }: Api): Promise<Local> => {
  const { folder } = await requireManifest(context)
  const kinds = kindsOf(context)
  const { definitions, count, fileOf } = await readFiles(folder, kinds)
  const { data: project } = await call(getProject, { path: { projectId: await projectFor(context) } })
  return { project, count, kinds, fileOf, document: { version: 1, definitions, left_out: [] } }
}

type Problem = {
  readonly kind: string
  readonly key: string | null
  readonly field: string | null
  readonly reason: string
}

/** What the server says of files that are no definitions, as it is said of those that no JSON parser takes. */
const wrongFiles = (error: TrellisError, { document, fileOf }: Local): CliError | null => {
  const problems = error.details?.['problems'] as readonly Problem[] | undefined
  if (!Array.isArray(problems) || problems.length === 0) return null
  const lines = problems.flatMap(({ kind, key, field, reason }) => {
    if (key !== null) return [`${fileOf(kind, key) ?? `${kind}/${key}`}: ${field} ${reason}.`]
    return Object.keys(document.definitions[kind] ?? {}).map((each) => `${fileOf(kind, each)}: ${kind} ${reason}.`)
  })
  return filesError(lines)
}

const send = async ({ call }: Api, local: Local, dry_run: boolean, body: ImportBody): Promise<Plan | Applied> => {
  try {
    return (
      await call(importPromotion, {
        path: { projectId: local.project.id },
        query: { dry_run: dry_run ? 'true' : 'false' },
        body,
      })
    ).data
  } catch (error) {
    const wrong = isRefusal(error, 'INVALID_BODY') ? wrongFiles(error, local) : null
    if (wrong) throw wrong
    if (isRefusal(error, 'INVALID_BODY') && error.details?.['field'] === 'kinds')
      throw usageError(`--kind: ${String(error.details['reason'])}.`, 'docs/promotion.md lists the kinds.')
    // the project is there: what is missing is the route
    if (!isRefusal(error, 'NOT_FOUND')) throw error
    throw new CliError(
      'SERVER_TOO_OLD',
      exits.failed,
      'This server does not take definitions from files yet: it needs a later version.',
    )
  }
}

const bodyOf = ({ document, kinds }: Local, prune: boolean): ImportBody => ({
  document,
  ...(kinds ? { kinds: [...kinds] } : {}),
  ...(prune ? { prune } : {}),
})

export const planOf = async (api: Api, local: Local, prune: boolean): Promise<Plan> =>
  (await send(api, local, true, bodyOf(local, prune))) as Plan

/** Definitions that the files do not have and that a plan with prune leaves all the same: the server never deletes them for a document. */
export const keptOf = async (
  api: Api,
  { project, document, kinds }: Local,
  { ops, blocked }: Plan,
): Promise<Kept[]> => {
  const definitions = only((await exportOf(api, project.id)).definitions, kinds)
  const planned = new Set([...ops, ...blocked].map(({ kind, key }) => `${kind}/${key}`))
  return Object.entries(definitions).flatMap(([kind, rows]) =>
    Object.keys(rows)
      .filter((key) => !Object.hasOwn(document.definitions[kind] ?? {}, key) && !planned.has(`${kind}/${key}`))
      .map((key) => ({ kind, key })),
  )
}

const ended = ['succeeded', 'failed', 'cancelled', 'waiting']

/** Applies a plan as it was shown, and waits for its end. */
export const apply = async (api: Api, local: Local, plan: Plan, prune: boolean): Promise<Applied> => {
  const { plan_hash } = plan
  const body = { ...bodyOf(local, prune), plan_hash, confirm: plan_hash }
  let { operation_id, status } = (await send(api, local, false, body)) as Applied
  while (!ended.includes(status)) {
    await new Promise((resolve) => setTimeout(resolve, 500))
    const path = { projectId: local.project.id, operationId: operation_id }
    status = (await api.call(getOperation, { path })).data.status
  }
  if (status !== 'succeeded') {
    throw new CliError('PUSH_FAILED', exits.failed, `The push is ${status}: operation ${operation_id}.`)
  }
  return { operation_id, status }
}
