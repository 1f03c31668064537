import type { Case, World } from '#test/support/supabase_cases/case.ts'
import { all, parts } from '#test/support/supabase_cases/groups.ts'

type Shown = Pick<Case<World>, 'part' | 'call' | 'refuses' | 'verdict' | 'note'>

const begin = '<!-- calls: made by npm run docs -->'
const end = '<!-- end of calls -->'

const cell = (text: string) => text.replaceAll('|', '\\|')
const codes = (refuses: string) =>
  refuses
    .split('|')
    .map((code) => `\`${code}\``)
    .join(' or ')
const resultOf = ({ refuses, verdict }: Shown) =>
  [...(verdict ? [verdict] : []), ...(refuses ? [codes(refuses)] : verdict ? [] : ['works'])].join(': ')
const row = (one: Shown) => `| \`${cell(one.call)}\` | ${resultOf(one)} | ${cell(one.note ?? '')} |`

const section = (part: string) =>
  [`### ${part}`, '', '| call | result | |', '|---|---|---|', ...all.filter((one) => one.part === part).map(row)].join(
    '\n',
  )

/** The guide with the calls that the tests make, each with what comes of it there. */
export const withCalls = (page: string): string => {
  const [before, rest = ''] = page.split(begin)
  const after = rest.split(end)[1]
  if (before === undefined || after === undefined)
    throw new Error(`docs/supabase-js.md has lost its marks "${begin}" and "${end}".`)
  return `${before}${begin}\n${parts.map(section).join('\n\n')}\n${end}${after}`
}
