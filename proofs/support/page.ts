import { join } from 'node:path'
import { root } from '#server/root.ts'
import { circumstances, writeSection } from '../../bench/support/results.ts'

const page = join(root, 'docs/reliability.md')

export type Claim = { readonly text: string; readonly holds: boolean }

const linesOf = (claims: readonly Claim[]) =>
  claims.map(({ text, holds }) => `- ${holds ? 'holds' : '**does not hold**'}: ${text}`)

/** Shows what a part of a proof found, and writes it into the part's own section of docs/reliability.md unless the page is to stay as it is. */
export const reportPart = async (
  command: string,
  section: string,
  versions: Readonly<Record<string, string>>,
  { claims, more }: { readonly claims: readonly Claim[]; readonly more?: string | undefined },
  isWritten: boolean,
): Promise<void> => {
  const lines = linesOf(claims).join('\n')
  process.stdout.write(`\n${lines}\n`)
  if (claims.some(({ holds }) => !holds)) process.exitCode = 1
  if (!isWritten) return
  const met = (await circumstances(command, versions)).replace(/^- /, '').replaceAll('\n- ', '; ')
  await writeSection(section, [lines, '', ...(more ? [more, ''] : []), `(${met})`].join('\n'), page)
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
