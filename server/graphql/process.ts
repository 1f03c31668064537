import { answer } from '#server/graphql/answer.ts'
import { createConnections, Unreachable } from '#server/graphql/connections.ts'
import { type FromProcess, type Make, ofCatalog, type ToProcess } from '#server/graphql/messages.ts'
import { buildSchema, type Made } from '#server/graphql/schema.ts'

/**
 * A process that makes one schema and answers GraphQL with it, for server/graphql/graphql.ts. It gets the login of the dashboards' role over IPC and has no
 * other secret; a schema or a query that stops it, or needs too much memory, costs neither the API nor the projects with other schemas anything. A program:
 * nothing imports it.
 */
const send = (message: FromProcess) => process.send?.(message)

const connections = createConnections()
let current: Made | undefined

const make = async ({ id, target, asking, tables }: Make): Promise<void> => {
  try {
    const made = await buildSchema(connections.request(target, asking, ofCatalog), tables)
    for (const message of made.problems) send({ kind: 'problem', message, code: 'SCHEMA' })
    current = made
    send({ kind: 'made', id, error: null, isUnreachable: false })
  } catch (error) {
    send({ kind: 'made', id, error: (error as Error).message, isUnreachable: error instanceof Unreachable })
  }
}

// its parent has gone: nobody waits for an answer
process.on('disconnect', () => process.exit())
process.on('message', async (message: ToProcess) => {
  if (message.kind === 'make') return make(message)
  // a schema that is made meanwhile is for later queries
  const response = current
    ? await answer(message, current, connections, ({ message, code }) => send({ kind: 'problem', message, code }))
    : null
  send({ kind: 'answered', id: message.id, response })
})
send({ kind: 'ready' })
