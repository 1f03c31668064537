import { answer } from '#server/graphql/answer.ts'
import { createConnections } from '#server/graphql/connections.ts'
import type { FromProcess, ToProcess } from '#server/graphql/messages.ts'
import { createSchemas } from '#server/graphql/schemas.ts'

/**
 * A process that answers GraphQL, for server/graphql/graphql.ts. It gets the login of the dashboards' role over IPC and has no other secret; a query
 * that stops it, or needs too much memory, costs the API nothing. A program: nothing imports it.
 */
const send = (message: FromProcess) => process.send?.(message)

const connections = createConnections()
const schemas = createSchemas(connections)

// its parent has gone: nobody waits for an answer
process.on('disconnect', () => process.exit())
process.on('message', async (message: ToProcess) => {
  if (message.kind === 'changed') return schemas.changed(message.projectId)
  const body = await answer(message, schemas, connections, ({ message, code }) =>
    send({ kind: 'problem', message, code }),
  )
  send({ kind: 'answered', id: message.id, body })
})
send({ kind: 'ready' })
