import { type Case, cases } from '#test/support/supabase_cases.ts'

const begin = '<!-- calls: made by npm run docs -->'
const end = '<!-- end of calls -->'

const cell = (text: string) => text.replaceAll('|', '\\|')
const row = ({ call, refuses, note }: Case) =>
  `| \`${cell(call)}\` | ${
    refuses
      ? refuses
          .split('|')
          .map((code) => `\`${code}\``)
          .join(' or ')
      : 'works'
  } | ${cell(note ?? '')} |`

const section = (part: string) =>
  [
    `### ${part}`,
    '',
    '| call | result | |',
    '|---|---|---|',
    ...cases.filter((one) => one.part === part).map(row),
  ].join('\n')

/** The guide with the calls that test/rest-clients makes, each with what comes of it there. */
export const withCalls = (page: string): string => {
  const [before, rest = ''] = page.split(begin)
  const after = rest.split(end)[1]
  if (before === undefined || after === undefined)
    throw new Error(`docs/supabase-js.md has lost its marks "${begin}" and "${end}".`)
  const parts = [...new Set(cases.map(({ part }) => part))]
  return `${before}${begin}\n${parts.map(section).join('\n\n')}\n${end}${after}`
}
