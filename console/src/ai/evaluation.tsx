import { Alert, Button, Group, SegmentedControl, Skeleton, Stack, Text } from '@mantine/core'
import { skipToken, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { FlaskConical, Plus } from 'lucide-react'
import { useState } from 'react'
import { evaluateAiPrompt } from '../../../sdk/src/generated/admin.ts'
import type { EvaluateAiPromptResult } from '../../../sdk/src/generated/schemas.ts'
import { call, TrellisError } from '../api.ts'
import { Card, PageHead, ProjectLink, useProject } from '../parts/page.tsx'
import { counted, Failure, sentenceOf, useRefresh } from '../parts/states.tsx'
import { CaseEditor } from './case_editor.tsx'
import { bodyOf, type Case, isWhole, mostCases, mostRuns, newCase, outcomeOf, useEvaluations } from './cases.ts'
import { placeholdersOf, usePrompt } from './data.ts'
import { Results } from './results.tsx'

type Run = { readonly result: EvaluateAiPromptResult; readonly cases: readonly Case[] }

/** The place of the case that a refusal is about, such as 1 of `cases.1.expect.regex`. */
const placeOf = (error: unknown): number | undefined => {
  const field = error instanceof TrellisError ? String(error.details?.['field'] ?? '') : ''
  const [, place] = /^cases\.(\d+)\b/.exec(field) ?? []
  return place === undefined ? undefined : Number(place)
}

/** The cases of one prompt, which are run against its current version. */
export const Evaluation = ({ name }: { name: string }) => {
  const { path } = useProject()
  const client = useQueryClient()
  const refresh = useRefresh()
  const { data: prompt, error, refetch } = usePrompt(name)
  const { all, save } = useEvaluations(path.projectId)
  const [blank] = useState(newCase)
  const { cases = [blank], runs = 1 } = all[name] ?? {}
  const [tried, setTried] = useState(false)
  // outlasts the page, on which nobody has to wait for the models
  const queryKey = ['evaluated', path.projectId, name]
  const { data: last } = useQuery<Run>({ queryKey, queryFn: skipToken, gcTime: Number.POSITIVE_INFINITY })
  const work = useMutation({
    mutationFn: async () => {
      const body = { runs, cases: cases.map(bodyOf) }
      const { data: result } = await call(evaluateAiPrompt, { path: { ...path, name }, body })
      client.setQueryData<Run>(queryKey, { result, cases })
      save(name, { last: outcomeOf(result) })
      await refresh()
    },
  })
  const set = (next: readonly Case[]) => save(name, { cases: next })
  const refused = placeOf(work.error)
  const errorOf = (one: Case, at: number) =>
    tried && !isWhole(one) ? 'Say what the answer must have' : refused === at ? sentenceOf(work.error) : undefined
  const run = () => {
    setTried(true)
    if (cases.every(isWhole)) work.mutate()
  }
  return (
    <>
      <PageHead
        title={`Evaluation of ${name}`}
        about="Questions with answers that you expect, run before a change of the prompt reaches users"
        back={{ title: 'Evaluations', to: 'ai/evaluations' }}
        actions={
          <Button variant="default" component={ProjectLink} to={`ai/prompts/${name}`}>
            Open the prompt
          </Button>
        }
      />
      {error && <Failure error={error} onRetry={refetch} />}
      {!prompt && !error && <Skeleton h={320} />}
      {prompt && (
        <Stack gap="md">
          <Card title={counted(cases.length, 'case')}>
            <form
              noValidate
              onSubmit={(event) => {
                event.preventDefault()
                run()
              }}
            >
              <Stack gap="sm" className="cases">
                {cases.map((one, at) => (
                  <CaseEditor
                    key={one.id}
                    one={one}
                    place={at + 1}
                    marks={placeholdersOf(prompt.system_prompt)}
                    error={errorOf(one, at)}
                    onChange={(next) => set(cases.map((other) => (other.id === one.id ? next : other)))}
                    onRemove={() => set(cases.filter(({ id }) => id !== one.id))}
                  />
                ))}
                {cases.length < mostCases && (
                  <div>
                    <Button
                      variant="default"
                      size="xs"
                      leftSection={<Plus size={14} />}
                      onClick={() => set([...cases, newCase()])}
                    >
                      Add case
                    </Button>
                  </div>
                )}
                <Group gap="xs">
                  <Text size="sm" id="runs">
                    Ask each
                  </Text>
                  <SegmentedControl
                    size="xs"
                    aria-labelledby="runs"
                    value={String(runs)}
                    onChange={(next) => save(name, { cases, runs: Number(next) })}
                    data={Array.from({ length: mostRuns }, (_, n) => ({
                      value: String(n + 1),
                      label: n === 0 ? 'once' : `${n + 1} times`,
                    }))}
                  />
                </Group>
                {work.error && refused === undefined && <Failure error={work.error} />}
                {prompt.provider === 'echo' && (
                  <Alert color="gray">Echo answers with what it was asked: it shows whether your cases work.</Alert>
                )}
                <Group justify="space-between">
                  <Text size="xs" c="dimmed">
                    Kept in this browser. Each call costs what a call of an app costs, and counts against the budget.
                  </Text>
                  <Button
                    type="submit"
                    leftSection={<FlaskConical size={15} />}
                    loading={work.isPending}
                    disabled={cases.length === 0}
                  >
                    Run {counted(cases.length * runs, 'call')} on version {prompt.version}
                  </Button>
                </Group>
              </Stack>
            </form>
          </Card>
          {work.isPending && (
            <Text size="sm" c="dimmed" role="status">
              The model answers…
            </Text>
          )}
          {last && !work.isPending && <Results result={last.result} cases={last.cases} />}
        </Stack>
      )}
    </>
  )
}
