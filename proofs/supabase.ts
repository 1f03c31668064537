// The published clients of Supabase against a server with a project: npm run proof:supabase [-- latest, or a version]. Every call of the table in
// docs/supabase-js.md is made, with the packages of our lockfile, or those of npm. States for each group what passes, what differs and why, and what is not
// offered, and fails where a public method of the clients stands nowhere in the table.
import type { Case, World } from '#test/support/supabase_cases/case.ts'
import { all, parts } from '#test/support/supabase_cases/groups.ts'
import { matches } from '#test/support/supabase_cases/outcome.ts'
import { install } from '../bench/support/installation.ts'
import { say } from '../bench/support/results.ts'
import { declarationsIn, methodsOf, unnamed } from './supabase/methods.ts'
import { openStage, published } from './supabase/stage.ts'
import { reportPart } from './support/page.ts'

const wanted = process.argv[2]
const clients = await published(wanted)
say(`supabase-js ${clients.version}`)

type Made = { readonly one: Case<World>; readonly problem: string | null; readonly isAbsent: boolean }

const make = async (one: Case<World>, world: World): Promise<Made> => {
  let isAbsent = false
  const problem = await Promise.resolve()
    .then(() => one.run?.(world))
    .then((outcome) => matches(one, outcome))
    .catch((error: unknown) => {
      // an older client has fewer methods
      isAbsent = wanted !== undefined && error instanceof TypeError && / is not a function$/.test(error.message)
      // what a client throws is its refusal
      return isAbsent ? null : matches(one, { error })
    })
  if (problem) say(`${one.part}: ${one.call}: ${problem}`)
  return { one, problem, isAbsent }
}

const verdicts = [
  ['pass', undefined],
  ['different', 'differs'],
  ['not offered', 'not offered'],
] as const

const claimOf = (part: string, made: readonly Made[]) => {
  const group = made.filter(({ one }) => one.part === part)
  const counts = verdicts.flatMap(([word, verdict]) => {
    const count = group.filter(({ one, isAbsent }) => !isAbsent && one.verdict === verdict).length
    return count > 0 ? [`${count} ${word}`] : []
  })
  const absent = group.filter(({ isAbsent }) => isAbsent).length
  if (absent > 0) counts.push(`${absent} unknown to this client`)
  const wrong = group.flatMap(({ one, problem }) => (problem ? [`\`${one.call}\` ${problem}`] : []))
  const text = `${part}: of ${group.length} calls ${counts.join(', ')}, as the table says`
  return { text: [text, ...wrong].join('; but '), holds: wrong.length === 0 }
}

const installation = await install()
try {
  const world = await openStage(installation, clients)
  const made: Made[] = []
  for (const one of all) if (one.run) made.push(await make(one, world))
  const methods = await methodsOf(world.fresh(), declarationsIn(clients.beside))
  const missing = unnamed(
    methods,
    all.map(({ call }) => call),
  )
  await world.end()
  const others = all.filter(({ verdict }) => verdict !== undefined)
  await reportPart(
    `npm run proof:supabase${wanted ? ` -- ${wanted}` : ''}`,
    'proof:supabase',
    { 'supabase-js': clients.version },
    {
      claims: [
        ...parts.filter((part) => made.some(({ one }) => one.part === part)).map((part) => claimOf(part, made)),
        {
          text: [
            `each of the ${methods.length} public methods of the clients stands in the table of supabase-js.md`,
            ...missing,
          ].join('; but not '),
          holds: missing.length === 0,
        },
      ],
      more: [
        'What differs or is not offered, with the reason:',
        '',
        ...others.map(({ call, verdict, note }) => `- \`${call}\`: ${verdict}${note ? `: ${note}` : ''}`),
      ].join('\n'),
    },
    wanted === undefined,
  )
} finally {
  await installation.end()
}
