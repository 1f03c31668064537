import { Button, type ButtonProps, Group, Kbd, TextInput } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import { Gauge, Link2, ListTree, Play, Save } from 'lucide-react'
import { useState } from 'react'
import { done } from '../parts/states.tsx'
import type { Explain } from './data.ts'
import type { Queries } from './kept.ts'

/** Takes the name of a query that this browser keeps. */
const SaveAs = ({ sql, queries, onDone }: { sql: string; queries: Queries; onDone: () => void }) => {
  const [name, setName] = useState('')
  return (
    <form
      className="sql-save"
      onSubmit={(event) => {
        event.preventDefault()
        if (!name.trim()) return
        queries.save(name.trim(), sql)
        done(`“${name.trim()}” is saved in this browser.`)
        onDone()
      }}
    >
      <TextInput
        size="xs"
        aria-label="Name of the query"
        placeholder="Name of the query"
        maxLength={80}
        autoComplete="off"
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Button size="xs" type="submit" disabled={!name.trim()}>
        Save query
      </Button>
      <Button size="xs" variant="default" onClick={onDone}>
        Cancel
      </Button>
    </form>
  )
}

/** What is running: a query for its rows, or for how Postgres would run it or did. */
export type Running = 'rows' | Explain

/** What is done with a query: run, explained, measured, kept, shared. */
export const Bar = ({
  text,
  running,
  queries,
  onAsk,
}: {
  text: string
  running: Running | undefined
  queries: Queries
  onAsk: (explain?: Explain) => void
}) => {
  const [isNaming, setNaming] = useState(false)
  const clipboard = useClipboard()
  const common: ButtonProps = { size: 'xs', disabled: !text.trim() }
  const quiet: ButtonProps = { ...common, variant: 'subtle', color: 'gray' }
  const copyLink = () => {
    const link = new URL(location.href)
    link.searchParams.set('q', text)
    clipboard.copy(link.href)
    done('The link is copied. It opens the query, and runs nothing.')
  }
  return (
    <Group justify="space-between" gap="xs" className="sql-bar">
      <Group gap={6}>
        <Button
          {...common}
          leftSection={<Play size={13} />}
          rightSection={<Kbd size="xs">Ctrl ↵</Kbd>}
          loading={running === 'rows'}
          onClick={() => onAsk()}
        >
          Run
        </Button>
        <Button
          {...common}
          variant="default"
          leftSection={<ListTree size={13} />}
          loading={running === 'plan'}
          onClick={() => onAsk('plan')}
        >
          Explain
        </Button>
        <Button
          {...common}
          variant="default"
          leftSection={<Gauge size={13} />}
          loading={running === 'analyze'}
          onClick={() => onAsk('analyze')}
        >
          Run and measure
        </Button>
      </Group>
      {isNaming ? (
        <SaveAs sql={text} queries={queries} onDone={() => setNaming(false)} />
      ) : (
        <Group gap={6}>
          <Button {...quiet} leftSection={<Save size={13} />} onClick={() => setNaming(true)}>
            Save
          </Button>
          <Button {...quiet} leftSection={<Link2 size={13} />} onClick={copyLink}>
            Copy link
          </Button>
        </Group>
      )}
    </Group>
  )
}
