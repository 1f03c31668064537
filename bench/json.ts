import { performance } from 'node:perf_hooks'
import { checkJson, parseJson } from '#server/http/json.ts'

// What the check of a body costs, beside JSON.parse of the same text: `node bench/json.ts`. Each figure is the best of several rounds.

const event = {
  event_name: 'lesson_completed',
  properties: { lesson: 3, score: 0.87, tags: ['a', 'b'], id: '0190a1b2-0000-7000-8000-000000000000' },
  occurred_at: '2026-10-03T10:00:00.000Z',
}
const list = (item: string, count: number) => `[${Array(count).fill(item).join()}]`
const bodies: readonly (readonly [string, string])[] = [
  ['an event', JSON.stringify(event)],
  ['500 events', JSON.stringify({ events: Array(500).fill(event) })],
  ['whole numbers', list('1', 500_000)],
  ['numbers of 17 digits', list('12345678901234567', 55_000)],
  ['one number of 1000 digits among others', `[${'9'.repeat(1000)},${'1,'.repeat(500_000)}1]`],
  ['1e999', list('1e999', 170_000)],
  ['strings of 1e999', list('"1e999"', 125_000)],
  ['strings of escaped 1', list('"\\u0031"', 110_000)],
  ['one string', JSON.stringify('x'.repeat(1_000_000))],
  ['one string of escapes', `"${'\\u00e9'.repeat(170_000)}"`],
  ['empty lists', list('[]', 340_000)],
  ['words', list('true', 200_000)],
  ['objects', list('{"a":1,"b":"x"}', 60_000)],
]

const bestOf = (bytes: Buffer, run: () => void): number => {
  const times = Math.max(1, Math.round(1_000_000 / bytes.length))
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 20; round += 1) {
    const began = performance.now()
    for (let index = 0; index < times; index += 1) run()
    best = Math.min(best, (performance.now() - began) / times)
  }
  return (best * 1e6) / bytes.length
}

console.log('nanoseconds a byte'.padEnd(42), 'check', 'check and parse', 'JSON.parse')
for (const [name, text] of bodies) {
  const bytes = Buffer.from(text)
  const figures = [() => checkJson(bytes), () => parseJson(bytes), () => JSON.parse(bytes.toString())].map((run) =>
    bestOf(bytes, run).toFixed(1),
  )
  console.log(name.padEnd(42), figures[0]?.padStart(5), figures[1]?.padStart(15), figures[2]?.padStart(10))
}
