import { Stack, Text } from '@mantine/core'
import { asText, type Fields, namesOf } from './data.ts'
import { linesOf } from './lines.ts'

const marks = { same: '', gone: '−', new: '+' } as const
const words = { same: '', gone: 'removed: ', new: 'added: ' } as const

/** What changed between two saves, field by field and line by line. */
export const Differences = ({ before, after }: { before: Fields; after: Fields }) => {
  const changed = namesOf(before, after).filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
  if (changed.length === 0)
    return (
      <Text size="sm" c="dimmed">
        They say the same.
      </Text>
    )
  return (
    <Stack gap="md">
      {changed.map((name) => (
        <section key={name} aria-label={name}>
          <div className="field-label mono">{name}</div>
          <div className="content-lines">
            {linesOf(asText(before[name]), asText(after[name])).map(({ kind, text }, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines repeat, and never move
              <div key={at} data-kind={kind}>
                <span aria-hidden="true">{marks[kind]}</span>
                <span>
                  {kind !== 'same' && <span className="only-read">{words[kind]}</span>}
                  {text || '\u00a0'}
                </span>
              </div>
            ))}
          </div>
        </section>
      ))}
    </Stack>
  )
}
