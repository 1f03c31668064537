import { Code, Group, SegmentedControl, Stack, Text, Title } from '@mantine/core'
import { useQueries } from '@tanstack/react-query'
import { Circle, CircleCheck } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { getProject, listCollections, listEvents, listUsers } from '../../../sdk/src/generated/admin.ts'
import { call, callAny } from '../api.ts'
import { ProjectLink, useProject } from '../parts/page.tsx'
import { Copied } from '../parts/status.tsx'

const snippets: Readonly<Record<string, (url: string) => string>> = {
  curl: (url) => `KEY=svc_live_ck_…   # the client key of this project
SESSION=$(curl -s -X POST ${url}/v1/client/auth/anonymous -H "x-api-key: $KEY" | grep -o 'eyJ[^"]*' | head -1)
curl ${url}/v1/client/events -H "x-api-key: $KEY" -H "authorization: Bearer $SESSION" \\
  -H "content-type: application/json" -d '{"event_name": "lesson_completed"}'`,
  JavaScript: (url) => `import { createApp } from 'trellis-sdk'
import { sendEvents } from 'trellis-sdk/client'

const app = createApp({ url: '${url}', key: 'svc_live_ck_…' })
await app.ensureSignedIn()
await app.call(sendEvents, { body: { event_name: 'lesson_completed' } })`,
}

type Step = { readonly title: string; readonly about: ReactNode; readonly isDone: boolean }

/** How far a new project has come: undefined while that is asked. */
export const useSteps = (): readonly Step[] | undefined => {
  const { path } = useProject()
  const every = { refetchInterval: 4000 }
  const [project, users, events, collections, streaks] = useQueries({
    queries: [
      { queryKey: ['project', path.projectId], queryFn: () => call(getProject, { path }) },
      {
        queryKey: ['start users', path.projectId],
        queryFn: () => call(listUsers, { path, query: { limit: 1 } }),
        ...every,
      },
      {
        queryKey: ['start events', path.projectId],
        queryFn: () => call(listEvents, { path, query: { limit: 1 } }),
        ...every,
      },
      { queryKey: ['start collections', path.projectId], queryFn: () => call(listCollections, { path }) },
      {
        queryKey: ['start streaks', path.projectId],
        queryFn: () => callAny('GET /v1/admin/projects/{projectId}/streaks', { path, query: { limit: 1 } }),
      },
    ],
  })
  if (!project.data || !users.data || !events.data || !collections.data || !streaks.data) return undefined
  const keys = project.data.data.api_keys
  return [
    {
      title: 'Put the client key into your app',
      about: (
        <>
          Yours was shown when the project was made. <ProjectLink to="keys">Make another one</ProjectLink> if it is
          lost.
        </>
      ),
      isDone: keys.some(({ key_type, last_used_at }) => key_type === 'client' && last_used_at !== null),
    },
    {
      title: 'Sign the first user in',
      about: 'Anonymously at first: an address can be added later.',
      isDone: (users.data.total ?? 0) > 0,
    },
    {
      title: 'Send an event',
      about: 'What users do moves streaks, XP, leaderboards and segments.',
      isDone: events.data.data.length > 0,
    },
    {
      title: 'Build something',
      about: (
        <>
          A <ProjectLink to="collections/new">collection</ProjectLink> for rows of your users, or a{' '}
          <ProjectLink to="streaks/new">streak</ProjectLink>.
        </>
      ),
      isDone: collections.data.data.length > 0 || (streaks.data.data as readonly unknown[]).length > 0,
    },
  ]
}

/** The first steps of a new project, which tick themselves, with a call that works when the key is put in. */
export const Start = ({ steps }: { steps: readonly Step[] }) => {
  const [way, setWay] = useState('curl')
  const text = snippets[way]?.(location.origin) ?? ''
  return (
    <section className="card" aria-label="First steps">
      <Title order={2} mb="sm">
        First steps
      </Title>
      <div className="split">
        <Stack gap="md" component="ol" className="first-steps">
          {steps.map(({ title, about, isDone }) => (
            <Group key={title} component="li" gap={10} wrap="nowrap" align="flex-start">
              {isDone ? (
                <CircleCheck size={18} color="var(--good)" aria-label="Done" role="img" />
              ) : (
                <Circle size={18} color="var(--mantine-color-dimmed)" aria-label="To do" role="img" />
              )}
              <div>
                <Text fw={600} size="sm" td={isDone ? 'line-through' : undefined}>
                  {title}
                </Text>
                <Text size="sm" c="dimmed" component="div">
                  {about}
                </Text>
              </div>
            </Group>
          ))}
        </Stack>
        <div data-code>
          <Group justify="space-between" mb={6}>
            <SegmentedControl
              size="xs"
              aria-label="Language"
              value={way}
              onChange={setWay}
              data={Object.keys(snippets)}
            />
            <Copied value={text} label="Copy the snippet" />
          </Group>
          <Code block tabIndex={0}>
            {text}
          </Code>
        </div>
      </div>
    </section>
  )
}
