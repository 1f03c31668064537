// Parse Server with LiveQuery over a database of bench:realtime: one class that everybody reads, as a room is.
import { ParseServer } from 'parse-server'

const { PORT, DATABASE_HOST, DATABASE_PORT, DATABASE, DATABASE_USER, DATABASE_PASSWORD, APP_ID, MASTER_KEY } =
  process.env

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
  liveQuery: { classNames: ['Notice'] },
  startLiveQueryServer: true,
  liveQueryServerOptions: { keyPairs: {} },
  schema: {
    definitions: [
      {
        className: 'Notice',
        fields: { text: { type: 'String' }, sent: { type: 'Number' } },
        classLevelPermissions: { find: { '*': true }, get: { '*': true }, create: { '*': true } },
      },
    ],
  },
})
