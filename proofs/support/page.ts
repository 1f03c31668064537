import { join } from 'node:path'
import { root } from '#server/database/files.ts'
import { circumstances, writeSection } from '../../bench/support/results.ts'

const page = join(root, 'docs/reliability.md')

export type Claim = { readonly text: string; readonly holds: boolean }

const linesOf = (claims: readonly Claim[]) =>
  claims.map(({ text, holds }) => `- ${holds ? 'holds' : '**does not hold**'}: ${text}`)

/** Shows what a part of a proof found, and leaves the page as it is. */
export const print = (claims: readonly Claim[]): void => {
  process.stdout.write(`\n${linesOf(claims).join('\n')}\n`)
  if (claims.some(({ holds }) => !holds)) process.exitCode = 1
}

/** Writes what a proof found into its section of docs/reliability.md; one claim that does not hold fails the command. */
export const report = async (
  name: string,
  versions: Readonly<Record<string, string>>,
  claims: readonly Claim[],
  more = '',
  section = name,
): Promise<void> => {
  const text = [
    await circumstances(`npm run ${name}`, versions),
    '',
    ...linesOf(claims),
    ...(more ? ['', more] : []),
  ].join('\n')
  process.stdout.write(`\n${text}\n`)
  await writeSection(section, text, page)
  if (claims.some(({ holds }) => !holds)) process.exitCode = 1
}

export const percentile = (values: readonly number[], share: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
