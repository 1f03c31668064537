import { Button, SegmentedControl, Skeleton, Stack, useMantineColorScheme } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { MonitorSmartphone } from 'lucide-react'
import { useState } from 'react'
import { getDeveloper, revokeDeveloperSession } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { ListCard } from '../parts/list_card.tsx'
import { Card, Facts, PageHead } from '../parts/page.tsx'
import { done, Empty, Failure, failed, useRefresh, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { Organizations } from './organizations.tsx'

/** The kind of browser or program, from what it calls itself. */
const deviceOf = (agent: unknown): string => {
  const text = String(agent ?? '')
  const browser = /Firefox|Edg|Chrome|Safari|curl|node/.exec(text)?.[0]
  const system = /Windows|Mac OS|Android|iPhone|iPad|Linux/.exec(text)?.[0]
  return [browser === 'Edg' ? 'Edge' : browser, system].filter(Boolean).join(' on ') || 'Unknown device'
}

const Sessions = () => {
  const refresh = useRefresh()
  const end = useMutation({
    mutationFn: (sessionId: string) => call(revokeDeveloperSession, { path: { sessionId } }),
    onSuccess: async () => {
      done('That session has ended.')
      await refresh()
    },
    onError: failed,
  })
  return (
    <ListCard<Row>
      title="Where you are signed in"
      name="Sessions"
      operation="GET /v1/auth/developer/sessions"
      columns={[
        {
          title: 'Device',
          show: (row) => (
            <>
              {deviceOf(row['user_agent'])}
              <span className="cell-sub">{String(row['ip'] ?? row['last_ip'] ?? '')}</span>
            </>
          ),
        },
        { title: 'Since', show: (row) => <When at={row['created_at'] as string} /> },
        { title: 'Last used', show: (row) => <When at={(row['last_used_at'] ?? row['last_seen_at']) as string} /> },
        {
          title: 'End',
          show: (row) =>
            row['is_current'] === true || row['current'] === true ? (
              <Status value="this one" />
            ) : (
              <Button size="compact-sm" variant="default" onClick={() => end.mutate(String(row['id']))}>
                Sign out
              </Button>
            ),
        },
      ]}
      empty={<Empty icon={<MonitorSmartphone size={22} />} title="No sessions" />}
    />
  )
}

const Appearance = () => {
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true })
  return (
    <Card title="Colours">
      <SegmentedControl
        aria-label="Colours"
        value={colorScheme}
        onChange={(next) => setColorScheme(next as 'auto')}
        data={[
          { value: 'auto', label: 'As the system' },
          { value: 'light', label: 'Light' },
          { value: 'dark', label: 'Dark' },
        ]}
      />
    </Card>
  )
}

/** The developer's own account: profile, sessions, organizations, colours. */
export const Page = () => {
  const { data, error, refetch } = useQuery({ queryKey: ['me'], queryFn: () => call(getDeveloper) })
  const [isEditing, setEditing] = useState(false)
  const me = data?.data
  return (
    <>
      <PageHead
        title="Your account"
        about="How you sign in, and where you are signed in"
        actions={
          <Button variant="default" onClick={() => setEditing(true)} disabled={!me}>
            Edit
          </Button>
        }
      />
      {error && <Failure error={error} onRetry={refetch} />}
      {!me && !error && <Skeleton h={220} />}
      {me && (
        <div className="split">
          <Sessions />
          <Stack>
            <Card title="Profile">
              <Facts
                facts={[
                  ['Email', me.email],
                  ['Name', me.name],
                  ['Joined', <When key="at" at={me.created_at} />],
                ]}
              />
            </Card>
            <Organizations />
            <Appearance />
          </Stack>
        </div>
      )}
      <Drawer opened={isEditing} onClose={() => setEditing(false)} title="Edit your account">
        {me && (
          <OperationForm
            operation="PATCH /v1/auth/developer/me"
            row={me}
            verb="Save"
            onCancel={() => setEditing(false)}
            onDone={() => {
              setEditing(false)
              done('Saved.')
            }}
          />
        )}
      </Drawer>
    </>
  )
}
