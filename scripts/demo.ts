// npm run demo [-- offline | game]: the product's story in real requests, on a server of its own. Without a name from
// a developer's sign-up to a signed delivery; offline is an app's first flight without a network; game is a season of a
// league, a shop and its reviews.
import { join } from 'node:path'
import { type HttpsReceiver, startHttpsReceiver } from '#test/support/https.ts'
import { beginRun } from '#test/support/run.ts'
import { runFirst } from './demo/first.ts'
import { runGame } from './demo/game.ts'
import { runOffline } from './demo/offline.ts'
import { DemoError, print, startServer, stopServer } from './demo/world.ts'

const stories: Readonly<Record<string, (url: string, receiver: HttpsReceiver) => Promise<void>>> = {
  first: runFirst,
  offline: runOffline,
  game: runGame,
}

const interrupted = () =>
  new Promise<never>((_resolve, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => reject(new DemoError(`${signal}: the demo was stopped.`)))
  })

const main = async (): Promise<void> => {
  const [name = 'first', ...more] = process.argv.slice(2)
  const story = Object.hasOwn(stories, name) ? stories[name] : undefined
  if (!story || more.length > 0) throw new DemoError(`npm run demo -- ${Object.keys(stories).join(' | ')}`)
  const began = performance.now()
  const run = await beginRun()
  const stop = interrupted()
  stop.catch(() => undefined)
  const receiver = await startHttpsReceiver()
  const starting = startServer(join(run.folder, 'data'), receiver.caFile)
  try {
    print('Starting a server of its own, with an empty database.')
    const { url } = await Promise.race([starting, stop])
    print(`It listens on ${url}.`)
    await Promise.race([story(url, receiver), stop])
    print(`\nThat was the whole story, in ${((performance.now() - began) / 1000).toFixed(1)} seconds.`)
  } finally {
    await starting.then(({ child }) => stopServer(child)).catch(() => undefined)
    await receiver.close()
    await run.end()
  }
}

try {
  await main()
  process.exit(0)
} catch (error) {
  process.stderr.write(`\n${error instanceof DemoError ? error.message : String((error as Error).stack)}\n`)
  process.exit(1)
}
