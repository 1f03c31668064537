/** Running cases against a prompt. */
import type { z } from 'zod'
import { invokeOnce, storable } from '#server/ai/invoke.ts'
import type { Evaluation } from '#server/ai/requests.ts'
import { dataOf } from '#server/database/database.ts'
import { ApiError } from '#server/errors.ts'
import type { Answer, HandlerContext } from '#server/http/route.ts'

type Asked = z.output<typeof Evaluation>
type Case = Asked['cases'][number]

/** Calls that one evaluation has in progress. */
const atOnce = 4

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)
/** Sums of amounts in USD, which have ten decimals. */
const usd = (amounts: readonly number[]) => Number(sum(amounts).toFixed(10))

const runCase = async (context: HandlerContext, name: string, tried: Case) => {
  const { messages, context: variables, expect } = tried
  try {
    const asked = { messages, context: variables, stream: false }
    const { begun, text, usage } = await invokeOnce(context, name, 'evaluate', asked, false)
    const reply = await context.call('ai_evaluated', { expect, output: storable(text) }, { readOnly: true })
    const { passed } = dataOf<{ passed: boolean }>(reply)
    return { version: begun.version, passed, output: text, error: null, cost_usd: usage.cost_usd }
  } catch (error) {
    if (!(error instanceof ApiError) || (error.status >= 500 && error.status !== 502)) throw error
    const { code, message } = error
    return { version: null, passed: false, output: null, error: { code, message }, cost_usd: 0 }
  }
}

/** Runs functions, a few at a time, in order. */
const runAll = async <T>(tasks: readonly (() => Promise<T>)[]): Promise<T[]> => {
  const results: T[] = []
  const waiting = tasks.entries()
  const work = async () => {
    for (const [place, task] of waiting) results[place] = await task()
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, tasks.length) }, work))
  return results
}

/** Runs the cases against the current version of a prompt. A call that is refused or fails is a run that has not passed. */
export const evaluate = async (context: HandlerContext): Promise<Answer> => {
  const { runs, cases } = context.body as Asked
  const name = String(context.params['name'])
  await context.call(
    'ai_evaluation_check',
    { name, expectations: cases.map(({ expect }) => expect) },
    { readOnly: true },
  )
  const results = await runAll(
    cases.flatMap((tried) => Array.from({ length: runs }, () => () => runCase(context, name, tried))),
  )
  const rate = (of: readonly { passed: boolean }[]) => of.filter(({ passed }) => passed).length / of.length
  const version = results.reduce<number | null>((newest, { version }) => version ?? newest, null)
  return {
    status: 200,
    body: JSON.stringify({
      data: {
        prompt: name,
        version,
        pass_rate: rate(results),
        cost_usd: usd(results.map(({ cost_usd }) => cost_usd)),
        cases: cases.map((_, place) => {
          const own = results.slice(place * runs, (place + 1) * runs)
          return {
            pass_rate: rate(own),
            cost_usd: usd(own.map(({ cost_usd }) => cost_usd)),
            runs: own.map(({ passed, output, error, cost_usd }) => ({ passed, output, error, cost_usd })),
          }
        }),
      },
    }),
  }
}
