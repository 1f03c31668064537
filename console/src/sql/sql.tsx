import { Alert, Anchor, Button, Group, Kbd, Skeleton, Text, TextInput } from '@mantine/core'
import { useClipboard, useDebouncedCallback } from '@mantine/hooks'
import { useMutation } from '@tanstack/react-query'
import { CircleAlert, Gauge, Link2, ListTree, Play, Save } from 'lucide-react'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { PageHead, useAddress, useProject } from '../parts/page.tsx'
import { done, Failure } from '../parts/states.tsx'
import { type Explain, type Problem, problemOf, runSql } from './data.ts'
import type { Editor } from './editor.tsx'
import { Examples } from './examples.tsx'
import { type Queries, useQueries } from './kept.ts'
import { PlanTree } from './plan.tsx'
import { ResultTable } from './result.tsx'
import { SideList } from './side.tsx'

const SqlEditor = lazy(async () => ({ default: (await import('./editor.tsx')).SqlEditor }))

/** Line and column of a position that counts characters from 1. */
const placeOf = (text: string, position: number): string => {
  const before = [...text].slice(0, position - 1).join('')
  const line = before.split('\n').length
  return `line ${line}, column ${[...(before.split('\n').at(-1) ?? '')].length + 1}`
}

const Stumbled = ({
  problem,
  text,
  onGoTo,
}: {
  problem: Problem
  text: string
  onGoTo: (position: number) => void
}) => {
  const { position } = problem
  return (
    <Alert color="red" icon={<CircleAlert size={18} />} title={problem.message} role="alert" mt="sm">
      {problem.detail && <Text size="sm">{problem.detail}</Text>}
      {problem.hint && <Text size="sm">{problem.hint}</Text>}
      {position !== null && (
        <Button size="compact-sm" variant="default" mt={6} onClick={() => onGoTo(position)}>
          Go to {placeOf(text, position)}
        </Button>
      )}
    </Alert>
  )
}

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

/** Another project has other tables, queries and results. */
export const Page = () => {
  const { projectId } = useProject()
  return <Queried key={projectId} projectId={projectId} />
}

/** SQL that reads the project's database. The query stands in the address; it runs only when somebody says so. */
const Queried = ({ projectId }: { projectId: string }) => {
  const [{ q }, setAddress] = useAddress<'q'>()
  const asked = q === undefined ? '' : String(q)
  const [text, setText] = useState(asked)
  // what this page has put into the address and not read back yet, and what it read last
  const written = useRef<string[]>([])
  const read = useRef(asked)
  const [isNaming, setNaming] = useState(false)
  const editor = useRef<Editor>(null)
  const queries = useQueries(projectId)
  const clipboard = useClipboard()
  const keepInAddress = useDebouncedCallback((next: string) => {
    written.current.push(next)
    void setAddress({ q: next || undefined })
  }, 300)
  // a link within the page, or back
  useEffect(() => {
    const own = written.current.indexOf(asked)
    written.current.splice(0, own + 1)
    if (own < 0 && asked !== read.current) editor.current?.replace(asked)
    read.current = asked
  }, [asked])
  const run = useMutation({
    mutationFn: ({ sql, explain }: { sql: string; explain?: Explain }) => runSql(projectId, sql, explain),
    onMutate: ({ sql }) => queries.remember(sql),
  })
  const ask = (explain?: Explain) => {
    if (text.trim() && !run.isPending) run.mutate({ sql: text, ...(explain ? { explain } : {}) })
  }
  const change = (next: string) => {
    setText(next)
    keepInAddress(next)
  }
  const open = (sql: string) => editor.current?.replace(sql)
  const problem = run.error && run.variables?.sql === text ? problemOf(run.error) : undefined
  const isPlanned = run.variables?.explain === 'plan'
  return (
    <>
      <PageHead
        title="SQL"
        about="Queries over the project's database. They read every row, and change nothing."
        actions={
          <Anchor href="/docs" size="sm">
            Reference
          </Anchor>
        }
      />
      <div className="sql-page">
        <SideList queries={queries} onInsert={(name) => editor.current?.insert(name)} onOpen={open} />
        <div className="column">
          <section className="card" data-flush aria-label="Editor">
            <Suspense fallback={<Skeleton h={200} radius={0} />}>
              <SqlEditor value={text} onChange={change} onRun={() => ask()} problem={problem} handle={editor} />
            </Suspense>
            <Group justify="space-between" gap="xs" className="sql-bar">
              <Group gap={6}>
                <Button
                  size="xs"
                  leftSection={<Play size={13} />}
                  rightSection={<Kbd size="xs">Ctrl ↵</Kbd>}
                  loading={run.isPending && !run.variables?.explain}
                  disabled={!text.trim()}
                  onClick={() => ask()}
                >
                  Run
                </Button>
                <Button
                  size="xs"
                  variant="default"
                  leftSection={<ListTree size={13} />}
                  loading={run.isPending && isPlanned}
                  disabled={!text.trim()}
                  onClick={() => ask('plan')}
                >
                  Explain
                </Button>
                <Button
                  size="xs"
                  variant="default"
                  leftSection={<Gauge size={13} />}
                  loading={run.isPending && run.variables?.explain === 'analyze'}
                  disabled={!text.trim()}
                  onClick={() => ask('analyze')}
                >
                  Run and measure
                </Button>
              </Group>
              {isNaming ? (
                <SaveAs sql={text} queries={queries} onDone={() => setNaming(false)} />
              ) : (
                <Group gap={6}>
                  <Button
                    size="xs"
                    variant="subtle"
                    color="gray"
                    leftSection={<Save size={13} />}
                    disabled={!text.trim()}
                    onClick={() => setNaming(true)}
                  >
                    Save
                  </Button>
                  <Button
                    size="xs"
                    variant="subtle"
                    color="gray"
                    leftSection={<Link2 size={13} />}
                    disabled={!text.trim()}
                    onClick={() => {
                      const link = new URL(location.href)
                      link.searchParams.set('q', text)
                      clipboard.copy(link.href)
                      done('The link is copied. It opens the query, and runs nothing.')
                    }}
                  >
                    Copy link
                  </Button>
                </Group>
              )}
            </Group>
          </section>
          {problem && <Stumbled problem={problem} text={text} onGoTo={(position) => editor.current?.goTo(position)} />}
          {run.error && !problemOf(run.error) && (
            <Failure error={run.error} onRetry={() => ask(run.variables?.explain)} />
          )}
          {run.data && (
            <div className={run.data.plan && !isPlanned ? 'sql-beside' : 'column'}>
              {!isPlanned && <ResultTable key={run.submittedAt} result={run.data} />}
              {run.data.plan && <PlanTree plan={run.data.plan} />}
            </div>
          )}
          {run.isIdle && <Examples onChoose={open} />}
        </div>
      </div>
    </>
  )
}
