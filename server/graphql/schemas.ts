import type { Target } from '#server/database/pools.ts'
import type { Connections } from '#server/graphql/connections.ts'
import { type Asking, keptSchemas, ofCatalog } from '#server/graphql/messages.ts'
import { buildSchema, type Made } from '#server/graphql/schema.ts'
import { shapeOf } from '#server/graphql/shape.ts'

/** How long a shape is taken for granted: what somebody changes by hand shows after this time. */
const shapeMs = 30_000

export type Schemas = {
  of(target: Target, asking: Asking): Promise<Made>
  /** The shape of a project's database is looked at before the next answer. */
  changed(projectId: string): void
}

/** What tests replace. */
type Makers = {
  readonly build?: typeof buildSchema
  readonly shape?: typeof shapeOf
  readonly now?: () => number
}

/** The schemas of projects, made when they are first asked for, one at a time. The least recently used one is dropped for another. */
export const createSchemas = (
  connections: Connections,
  { build: make = buildSchema, shape: look = shapeOf, now = () => performance.now() }: Makers = {},
): Schemas => {
  const made = new Map<string, Promise<Made>>()
  const shapes = new Map<string, { readonly shape: Promise<string>; readonly until: number }>()
  let building: Promise<unknown> = Promise.resolve()

  const build = (shape: string, target: Target, asking: Asking): Promise<Made> => {
    const known = made.get(shape)
    if (known) {
      made.delete(shape)
      made.set(shape, known)
      return known
    }
    const next = building.then(() => make(connections.request(target, asking, ofCatalog)))
    building = next.catch(() => made.delete(shape))
    made.set(shape, next)
    for (const oldest of made.keys()) {
      if (made.size <= keptSchemas) break
      made.delete(oldest)
    }
    return next
  }

  const shape = (target: Target, asking: Asking): Promise<string> => {
    const known = shapes.get(asking.projectId)
    if (known && known.until > now()) return known.shape
    const asked = look(connections.request(target, asking, ofCatalog))
    shapes.delete(asking.projectId)
    shapes.set(asking.projectId, { shape: asked, until: now() + shapeMs })
    asked.catch(() => shapes.delete(asking.projectId))
    for (const oldest of shapes.keys()) {
      if (shapes.size <= 1000) break
      shapes.delete(oldest)
    }
    return asked
  }

  return {
    of: async (target, asking) => build(await shape(target, asking), target, asking),
    changed(projectId) {
      shapes.delete(projectId)
    },
  }
}
