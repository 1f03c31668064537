// Parse Server over its own database of bench:events: a cloud function adds one to a counter and to an entry of a leaderboard, as an event of ours does.
import { ParseServer } from 'parse-server'

const { PORT, DATABASE_HOST, DATABASE_PORT, DATABASE, DATABASE_USER, DATABASE_PASSWORD, APP_ID, MASTER_KEY } =
  process.env
const closed = { find: {}, get: {}, create: {}, update: {}, delete: {} }
const fields = { owner: { type: 'String' }, name: { type: 'String' }, count: { type: 'Number' } }

const addOne = async (className, owner, name) => {
  const found = await new Parse.Query(className)
    .equalTo('owner', owner)
    .equalTo('name', name)
    .first({ useMasterKey: true })
  const object = found ?? new Parse.Object(className, { owner, name, count: 0 })
  object.increment('count')
  await object.save(null, { useMasterKey: true })
  return object.get('count')
}

await ParseServer.startApp({
  databaseURI: `postgres://${DATABASE_USER}:${DATABASE_PASSWORD}@localhost/${DATABASE}?max=10`,
  databaseOptions: { host: DATABASE_HOST, port: Number(DATABASE_PORT) },
  appId: APP_ID,
  masterKey: MASTER_KEY,
  serverURL: `http://127.0.0.1:${PORT}/parse`,
  mountPath: '/parse',
  host: '127.0.0.1',
  port: Number(PORT),
  directAccess: true,
  allowClientClassCreation: false,
  silent: true,
  logLevel: 'error',
  verbose: false,
  cloud: (parse) => {
    parse.Cloud.define(
      'event',
      async ({ user, params }) => ({
        count: await addOne('Counter', user.id, params.event_name),
        score: await addOne('Entry', user.id, 'board'),
      }),
      { requireUser: true },
    )
  },
  schema: {
    definitions: ['Counter', 'Entry'].map((className) => ({
      className,
      fields,
      indexes: className === 'Entry' ? { byCount: { name: 1, count: -1 } } : { byOwner: { owner: 1, name: 1 } },
      classLevelPermissions: closed,
    })),
  },
})
