import { Anchor, Skeleton } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { useMutation } from '@tanstack/react-query'
import { Suspense, useEffect, useRef, useState } from 'react'
import { lazyPart } from '../outage.ts'
import { PageHead, useAddress, useProject } from '../parts/page.tsx'
import { Failure } from '../parts/states.tsx'
import { Bar } from './bar.tsx'
import { type Explain, problemOf, runSql } from './data.ts'
import type { Editor } from './editor.tsx'
import { Examples } from './examples.tsx'
import { useQueries } from './kept.ts'
import { PlanTree } from './plan.tsx'
import { ResultTable } from './result.tsx'
import { SideList } from './side.tsx'
import { Stumbled } from './stumbled.tsx'

const SqlEditor = lazyPart(() => import('./editor.tsx'), 'SqlEditor')

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
  const editor = useRef<Editor>(null)
  const queries = useQueries(projectId)
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
  const running = run.isPending ? (run.variables?.explain ?? 'rows') : undefined
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
            <Bar text={text} running={running} queries={queries} onAsk={ask} />
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
