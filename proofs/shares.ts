// What one tenant takes, others do not feel: for each thing that projects share somebody takes all of it that they may, and what others wait
// meanwhile is held against a bound. docs/scaling.md lists what is shared. Each part writes a section of its own: `--only <word>` runs the parts
// with this word in their name alone. `--short` makes fewer and shorter rounds, and writes nothing.
import { createScenario, install } from '../bench/support/installation.ts'
import { say } from '../bench/support/results.ts'
import { reportPart } from './support/page.ts'
import { heavy, locks } from './support/shares/connections.ts'
import { hub, loader } from './support/shares/live.ts'
import { createWorld, type Part } from './support/shares/part.ts'
import { databases, graphql, images, rest } from './support/shares/processes.ts'
import { controlWebhooks, operations, outboxes, startReceivers, useReceivers } from './support/shares/workers.ts'

const parts: readonly Part[] = [
  locks,
  heavy,
  graphql,
  images,
  rest,
  controlWebhooks,
  operations,
  databases,
  outboxes,
  hub,
  // last: it brings functions and policies that another program has
  loader,
]

const isShort = process.argv.includes('--short')
const only = process.argv.includes('--only') ? process.argv[process.argv.indexOf('--only') + 1] : undefined
const chosen = parts.filter(({ name }) => only === undefined || name.includes(only))
if (chosen.length === 0) throw new Error(`--only is one of ${parts.map(({ name }) => name).join(', ')}`)

const receivers = await startReceivers()
useReceivers(receivers)
const installation = await install()
const scenario = await createScenario(installation, 20, receivers.env)
const world = createWorld(installation, scenario, isShort)

const versions = { Postgres: installation.postgresVersion }
for (const { name, bound, run } of chosen) {
  say(`${name}: others wait less than ${bound}`)
  const began = performance.now()
  const found = await run(world).catch((error: Error) => ({
    claims: [{ text: `it could not be measured: ${error.message}`, holds: false }],
  }))
  await reportPart(`npm run proof:shares -- --only ${name}`, `proof:shares ${name}`, versions, found, !isShort)
  say(`${((performance.now() - began) / 1000).toFixed(0)} s`)
}
await installation.end()
await receivers.close()
process.exit()
