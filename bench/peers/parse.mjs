// Parse Server over its own database of bench:collections: no logs, no classes that clients make, indexes and rows come by SQL.
import { ParseServer } from 'parse-server'

const { PORT, DATABASE_HOST, DATABASE_PORT, DATABASE, DATABASE_USER, DATABASE_PASSWORD, APP_ID, MASTER_KEY } =
  process.env
const signedIn = { requiresAuthentication: true }

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
  schema: {
    definitions: [
      {
        className: 'Note',
        fields: {
          owner: { type: 'Pointer', targetClass: '_User' },
          title: { type: 'String' },
          body: { type: 'String' },
          rank: { type: 'Number' },
          done: { type: 'Boolean' },
          tags: { type: 'Array' },
          meta: { type: 'Object' },
          due: { type: 'Date' },
        },
        classLevelPermissions: { find: signedIn, get: signedIn, create: signedIn, update: signedIn, delete: signedIn },
      },
    ],
  },
})
