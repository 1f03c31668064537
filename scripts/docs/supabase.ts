import { auth } from '#test/support/supabase_cases/auth.ts'
import type { Shown } from '#test/support/supabase_cases/case.ts'
import { cases } from '#test/support/supabase_cases/postgrest.ts'
import { channels } from '#test/support/supabase_cases/realtime.ts'
import { storage } from '#test/support/supabase_cases/storage.ts'

const all: readonly Shown[] = [...auth, ...cases, ...storage, ...channels]

const begin = '<!-- calls: made by npm run docs -->'
const end = '<!-- end of calls -->'

const cell = (text: string) => text.replaceAll('|', '\\|')
const row = ({ call, refuses, note }: Shown) =>
  `| \`${cell(call)}\` | ${
    refuses
      ? refuses
          .split('|')
          .map((code) => `\`${code}\``)
          .join(' or ')
      : 'works'
  } | ${cell(note ?? '')} |`

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
  const parts = [...new Set(all.map(({ part }) => part))]
  return `${before}${begin}\n${parts.map(section).join('\n\n')}\n${end}${after}`
}
