/** Verification of the chain of seals. */
import { type Ask, placesOf } from '#server/audit/trail.ts'
import { dataOf } from '#server/database/database.ts'
import type { Arguments } from '#server/database/statements.ts'
import type { HandlerContext } from '#server/http/route.ts'

type Key = { readonly id: string; readonly key: string }

type Sealed = { readonly unsealed: number; readonly first_unsealed: string | null; readonly through: Key | null }

type Verified = {
  readonly checked: number
  readonly last_position: number | null
  readonly is_over: boolean
  readonly first_broken: Key | null
  readonly is_cut: boolean
  /** In the last step only: how many rows wait for their seal, and the row up to which all have one. */
  readonly sealed: Sealed | null
}

/** Verifies one database's chain in batches, up to the first row that does not follow from the previous one. */
const verifyPlace = async (ask: Ask, args: Arguments, isWanted: () => boolean) => {
  let checked = 0
  for (let after = 0; ; ) {
    const step = async () => dataOf<Verified>(await ask('audit_verify', { ...args, after_position: after }))
    const first = await step()
    // a statement that begins while a month gets its partition may miss the rows that move: a real break is found again
    const part = first.first_broken ? await step() : first
    checked += part.checked
    after = part.last_position ?? after
    if (part.first_broken || part.is_over || !isWanted()) return { ...part, checked }
  }
}

const byKey = (a: Key, b: Key) => (a.key < b.key ? -1 : 1)

/** The row of the list up to which all are sealed: the newest in both databases that is older than every unsealed one. */
const sealedThrough = async (places: readonly Ask[], parts: readonly (Sealed | null)[]): Promise<string | null> => {
  const first = parts
    .map((part) => part?.first_unsealed ?? null)
    .filter((key) => key !== null)
    .sort()[0]
  const sealed = first
    ? await Promise.all(places.map(async (ask) => dataOf<Sealed>(await ask('audit_sealed', { before: first }))))
    : parts
  const through = sealed.flatMap((part) => part?.through ?? [])
  return through.sort(byKey).at(-1)?.id ?? null
}

export const verify = async (context: HandlerContext) => {
  const isWanted = () => !context.request.raw.destroyed
  const places = placesOf(context, 'FETCH_FAILED')
  const parts = await Promise.all(places.map((ask) => verifyPlace(ask, context.query, isWanted)))
  const [first] = parts.flatMap(({ first_broken }) => first_broken ?? []).sort(byKey)
  const sealed = parts.map((part) => part.sealed)
  const result = {
    verified: !first && parts.every(({ is_cut }) => !is_cut),
    checked: parts.reduce((sum, part) => sum + part.checked, 0),
    first_broken_id: first?.id ?? null,
    sealed_through_id: await sealedThrough(places, sealed),
    unsealed: sealed.reduce((sum, part) => sum + (part?.unsealed ?? 0), 0),
  }
  return { status: 200, body: JSON.stringify({ data: result }) }
}
