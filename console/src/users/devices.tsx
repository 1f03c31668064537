import { Button, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Smartphone } from 'lucide-react'
import { accessToken, type Row } from '../api.ts'
import { Card, Facts } from '../parts/page.tsx'
import { Empty, Failure, When } from '../parts/states.tsx'
import { useUser } from './one_user.ts'
import { lasting } from './sessions.tsx'

type Kept = Readonly<Record<string, readonly Row[]>>
const text = (value: unknown) => (value === null || value === undefined || value === '' ? '—' : String(value))

/** Devices and sessions are in no list of the API: they are read from what is stored about the user. */
const read = async (projectId: string, userId: string): Promise<Kept> => {
  const answer = await fetch(`/v1/admin/projects/${projectId}/users/${userId}/export`, {
    headers: { authorization: `Bearer ${accessToken() ?? ''}` },
  })
  if (!answer.ok) throw new Error('The data of this user could not be read.')
  const kept: Record<string, Row[]> = {}
  for (const line of (await answer.text()).split('\n')) {
    if (!/^\{"section" ?: ?"(push_tokens|app_sessions|user_sessions|sessions)"/.test(line)) continue
    const { section, data } = JSON.parse(line) as { section: string; data: Row }
    kept[section] = [...(kept[section] ?? []), data]
  }
  return kept
}

export const Devices = () => {
  const { path } = useUser()
  const work = useMutation({ mutationFn: () => read(path.projectId, path.userId) })
  const tokens = work.data?.['push_tokens'] ?? []
  const sessions = [...(work.data?.['app_sessions'] ?? [])].sort((one, other) =>
    String(other['started_at']).localeCompare(String(one['started_at'])),
  )
  if (!work.data)
    return (
      <div className="card">
        {work.error && <Failure error={work.error} />}
        <Empty
          icon={<Smartphone size={22} />}
          title="Devices and sessions"
          action={
            <Button variant="default" loading={work.isPending} onClick={() => work.mutate()}>
              Read them
            </Button>
          }
        >
          They are read from all that is stored about this user. The audit trail notes that you looked.
        </Empty>
      </div>
    )
  return (
    <div className="column">
      <Card title="Devices for push">
        <Stack gap="md">
          {tokens.length === 0 && (
            <Text size="sm" c="dimmed">
              No device takes push messages: the app registered none, or the user signed out.
            </Text>
          )}
          {tokens.map((token) => (
            <Facts
              key={String(token['id'])}
              facts={[
                ['Platform', text(token['platform'])],
                ['Model', text(token['device_model'])],
                ['App', text(token['app_version'])],
                ['State', token['is_active'] === false ? 'off' : 'takes messages'],
                ['Since', <When key="at" at={token['created_at'] as string} />],
              ]}
            />
          ))}
        </Stack>
      </Card>
      <Card title="Sessions in the app">
        <Stack gap="md">
          {sessions.length === 0 && (
            <Text size="sm" c="dimmed">
              The app told of none.
            </Text>
          )}
          {sessions.slice(0, 20).map((session) => (
            <Facts
              key={String(session['id'])}
              facts={[
                ['Began', <When key="at" at={session['started_at'] as string} />],
                [
                  'Device',
                  [session['platform'], session['device_model'], session['app_version']].filter(Boolean).join(', '),
                ],
                [
                  'Length',
                  session['ended_at']
                    ? lasting(
                        (new Date(String(session['ended_at'])).getTime() -
                          new Date(String(session['started_at'])).getTime()) /
                          1000,
                      )
                    : 'open',
                ],
              ]}
            />
          ))}
        </Stack>
      </Card>
    </div>
  )
}
