/** Import of a catalog: many items in one request. */
import type { z } from 'zod'
import { refusal } from '#server/errors.ts'
import { parseJson } from '#server/http/json.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { lostNumber } from '#server/json/lossless_json.ts'

/** The body is the list itself, as in no other route: the types are validated here, item by item, the rest in SQL. */
export const importItems =
  (Item: z.ZodType) =>
  ({ request, query, call }: HandlerContext) => {
    const parsed = parseJson(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0))
    if (parsed.kind === 'broken')
      throw refusal(400, 'INVALID_BODY', parsed.reason, { field: '', reason: parsed.reason })
    if (!Array.isArray(parsed.value))
      throw refusal(400, 'INVALID_BODY', 'The body must be a JSON array of items.', {
        field: '',
        reason: 'must be a JSON array',
      })
    if (parsed.value.length < 1 || parsed.value.length > 5000)
      throw refusal(400, 'VALIDATION_ERROR', 'An import has 1 to 5000 items.', {
        field: '',
        reason: 'must have 1 to 5000 items',
      })
    const items: unknown[] = []
    const problems: Record<number, ReturnType<typeof problemAt>> = {}
    for (const [index, value] of parsed.value.entries()) {
      const read = Item.safeParse(value)
      const lost = read.success ? lostNumber(value, read.data) : null
      if (lost) problems[index] = problemAt(index, value, lost, 'must be an object')
      else if (read.success) items.push({ index, item: read.data })
      else problems[index] = problemOf(index, value, read.error)
    }
    return call('catalog_import', { items, problems, dry_run: query['dry_run'] })
  }

const problemOf = (index: number, value: unknown, { issues: [issue] }: z.ZodError) =>
  problemAt(index, value, issue?.path ?? [], issue?.message ?? 'is not valid')

const problemAt = (index: number, value: unknown, path: readonly PropertyKey[], reason: string) => {
  const { key } = Object(value) as { key?: unknown }
  const field = path.map(String).join('.')
  return { index, key: typeof key === 'string' ? key : null, message: `${field ? `${field}: ` : ''}${reason}` }
}
