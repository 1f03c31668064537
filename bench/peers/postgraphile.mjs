// PostGraphile 5 over the table of bench:collections, as one user: its own server, its amber preset, role and claims by pgSettings.
import { createServer } from 'node:http'
import { postgraphile } from 'postgraphile'
import { makePgService } from 'postgraphile/adaptors/pg'
import { grafserv } from 'postgraphile/grafserv/node'
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber'

const pgl = postgraphile({
  extends: [PostGraphileAmberPreset],
  pgServices: [makePgService({ connectionString: process.env.DSN, schemas: ['collections'], poolConfig: { max: 10 } })],
  grafast: {
    context: () => ({
      pgSettings: { role: 'web_user', 'request.jwt.claims': JSON.stringify({ sub: process.env.USER_ID }) },
    }),
  },
  grafserv: { graphiql: false },
})
const server = createServer()
server.on('error', (error) => console.error(error))
await pgl.createServ(grafserv).addTo(server)
server.listen(Number(process.env.PORT), '127.0.0.1')
