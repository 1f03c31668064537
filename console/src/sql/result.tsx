import { Button, Code, Group, Modal, Text } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import { useVirtualizer } from '@tanstack/react-virtual'
import { Copy } from 'lucide-react'
import { useRef, useState } from 'react'
import { counted, done } from '../parts/states.tsx'
import { csvOf, jsonOf } from './copy.ts'
import { type Column, isNumeric, type Result, type Value } from './data.ts'

const rowHeight = 34
/** Longer texts open in a window of their own. */
const longest = 60

const Cell = ({ column, value, onOpen }: { column: Column; value: Value; onOpen: () => void }) => {
  if (value === null)
    return (
      <td className="sql-null" data-number={isNumeric(column.type) || undefined}>
        null
      </td>
    )
  const text = String(value)
  if (text.length <= longest && !text.includes('\n'))
    return (
      <td data-number={isNumeric(column.type) || undefined}>
        {text === '' ? <span className="sql-null">empty</span> : text}
      </td>
    )
  return (
    <td>
      <button type="button" className="row-button sql-long" onClick={onOpen}>
        {text.slice(0, 200)}
      </button>
    </td>
  )
}

const CopyAs = ({ result, as, of }: { result: Result; as: string; of: (result: Result) => string }) => {
  const clipboard = useClipboard()
  return (
    <Button
      size="compact-sm"
      variant="default"
      leftSection={<Copy size={13} />}
      onClick={() => {
        clipboard.copy(of(result))
        done(`${counted(result.row_count, 'row')} copied as ${as}.`)
      }}
    >
      {as}
    </Button>
  )
}

/** What a query found: some sixty rows at a time are in the page, however many there are. */
export const ResultTable = ({ result }: { result: Result }) => {
  const { columns, rows } = result
  const scroller = useRef<HTMLDivElement>(null)
  const [open, setOpen] = useState<{ readonly name: string; readonly text: string }>()
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  })
  const shown = virtual.getVirtualItems()
  const before = shown[0]?.start ?? 0
  const after = virtual.getTotalSize() - (shown.at(-1)?.end ?? 0)
  return (
    <section className="card" data-flush aria-label="Result">
      <Group justify="space-between" gap="xs" className="sql-foot">
        <Text size="sm" role="status">
          {counted(result.row_count, 'row')} in {result.duration_ms} ms
          {result.is_cut && (
            <Text span c="var(--warn)">
              {' · '}
              there is more: rows were left out, or long values shortened
            </Text>
          )}
        </Text>
        <Group gap={6}>
          <CopyAs result={result} as="CSV" of={csvOf} />
          <CopyAs result={result} as="JSON" of={jsonOf} />
        </Group>
      </Group>
      <section className="sql-rows" ref={scroller} tabIndex={0} aria-label="Rows">
        <table className="table">
          <thead>
            <tr>
              {columns.map(({ name, type }, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: two columns may have one name
                <th key={at} scope="col" data-number={isNumeric(type) || undefined}>
                  {name}
                  <span className="sql-type">{type}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {before > 0 && <Gap height={before} />}
            {shown.map(({ index }) => (
              <tr key={index}>
                {columns.map((column, at) => (
                  <Cell
                    // biome-ignore lint/suspicious/noArrayIndexKey: two columns may have one name
                    key={at}
                    column={column}
                    value={rows[index]?.[at] ?? null}
                    onOpen={() => setOpen({ name: column.name, text: String(rows[index]?.[at]) })}
                  />
                ))}
              </tr>
            ))}
            {after > 0 && <Gap height={after} />}
          </tbody>
        </table>
        {rows.length === 0 && (
          <Text size="sm" c="dimmed" p="md">
            The query is right, and found no rows.
          </Text>
        )}
      </section>
      <Modal opened={open !== undefined} onClose={() => setOpen(undefined)} title={open?.name} size="lg" centered>
        <Code block className="sql-value" tabIndex={0} aria-label="Value">
          {readable(open?.text ?? '')}
        </Code>
      </Modal>
    </section>
  )
}

const Gap = ({ height }: { height: number }) => (
  <tr aria-hidden>
    <td className="gap" style={{ height }} />
  </tr>
)

/** JSON with its lines, anything else as it is. */
const readable = (text: string): string => {
  if (!/^[[{]/.test(text)) return text
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
