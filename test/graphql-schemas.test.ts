import { expect, test } from 'vitest'
import type { Connections } from '#server/graphql/connections.ts'
import { keptSchemas } from '#server/graphql/messages.ts'
import type { Made } from '#server/graphql/schema.ts'
import { createSchemas } from '#server/graphql/schemas.ts'

/** Which schemas are made, kept and dropped, without a database. */
const setUp = () => {
  const shapes = new Map<string, string>()
  const built: string[] = []
  const looked: string[] = []
  let clock = 0
  let broken = false
  let atOnce = 0
  let mostAtOnce = 0
  // the connection of a fake is the name of its project
  const connections = {
    request: (_target, { projectId }) => projectId as never,
    close: async () => undefined,
  } as Connections
  const shapeOf = (project: string) => shapes.get(project) ?? project
  const schemas = createSchemas(connections, {
    now: () => clock,
    shape: async (project) => {
      looked.push(project as unknown as string)
      return shapeOf(project as unknown as string)
    },
    build: async (project) => {
      atOnce += 1
      mostAtOnce = Math.max(mostAtOnce, atOnce)
      await new Promise((resolve) => setImmediate(resolve))
      atOnce -= 1
      if (broken) throw new Error('broken')
      built.push(shapeOf(project as unknown as string))
      return { name: built.at(-1) } as unknown as Made
    },
  })
  const of = async (project: string) =>
    (
      (await schemas.of({} as never, { projectId: project, developerId: '', sessionId: '' })) as unknown as {
        name: string
      }
    ).name
  return {
    schemas,
    shapes,
    built,
    looked,
    of,
    pass: (milliseconds: number) => (clock += milliseconds),
    breakIt: (is: boolean) => (broken = is),
    most: () => mostAtOnce,
  }
}

test('databases of one shape share a schema, which is made once', async () => {
  const { shapes, built, of } = setUp()
  for (const project of ['a', 'b', 'c']) shapes.set(project, 'same')
  expect(await Promise.all(['a', 'b', 'c', 'a'].map(of))).toEqual(['same', 'same', 'same', 'same'])
  expect(built).toEqual(['same'])
})

test('the least recently used schema goes when there are too many', async () => {
  const { built, of } = setUp()
  const names = Array.from({ length: keptSchemas }, (_, index) => `p${index}`)
  for (const name of names) await of(name)
  await of('p0')
  await of('new')
  expect(built).toEqual([...names, 'new'])
  await of('p0')
  expect(built).toHaveLength(keptSchemas + 1)
  await of('p1')
  expect(built.at(-1)).toBe('p1')
})

test('a shape is looked at after half a minute, and at once when it is said to have changed', async () => {
  const { schemas, shapes, built, looked, of, pass } = setUp()
  await of('a')
  shapes.set('a', 'second')
  expect(await of('a')).toBe('a')
  pass(30_001)
  expect(await of('a')).toBe('second')
  shapes.set('a', 'third')
  schemas.changed('other')
  expect(await of('a')).toBe('second')
  schemas.changed('a')
  expect(await of('a')).toBe('third')
  expect([built, looked.length]).toEqual([['a', 'second', 'third'], 3])
})

test('schemas are made one after the other, and one that failed is made again', async () => {
  const { of, breakIt, most, built } = setUp()
  breakIt(true)
  expect((await Promise.allSettled(['a', 'b', 'a'].map(of))).map(({ status }) => status)).toEqual(
    Array(3).fill('rejected'),
  )
  breakIt(false)
  expect(await Promise.all(['a', 'b'].map(of))).toEqual(['a', 'b'])
  expect([most(), built]).toEqual([1, ['a', 'b']])
})
