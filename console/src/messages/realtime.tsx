import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { getRealtimeStats } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Figure } from '../parts/chart.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { PageHead, useProject } from '../parts/page.tsx'
import { count, done, Failure, Rows } from '../parts/states.tsx'

/** How many apps listen at the moment, and a message to all of a channel. */
export const Page = () => {
  const { path } = useProject()
  const [isSending, setSending] = useState(false)
  const { data, error, refetch } = useQuery({
    queryKey: ['realtime', path.projectId],
    queryFn: () => call(getRealtimeStats, { path }),
    refetchInterval: 3000,
  })
  const stats = data?.data
  return (
    <>
      <PageHead
        title="Realtime"
        about="How many apps listen at the moment"
        actions={<Button onClick={() => setSending(true)}>Broadcast</Button>}
      />
      {error && <Failure error={error} onRetry={refetch} />}
      {!stats && !error && <Rows count={2} />}
      {stats && (
        <div className="cards">
          <Figure title="Connections" value={count(stats.connections)} about="now" />
          <Figure title="Users" value={count(stats.users)} about="now" />
          <Figure title="Channels" value={count(stats.channels)} about="now" />
          <Figure title="Messages a second" value={count(stats.messages_per_second)} about="now" />
        </div>
      )}
      <Drawer opened={isSending} onClose={() => setSending(false)} title="Broadcast">
        <OperationForm
          operation="POST /v1/admin/projects/{projectId}/realtime/broadcast"
          verb="Send"
          onCancel={() => setSending(false)}
          onDone={() => {
            setSending(false)
            done('Sent to whoever listens.')
          }}
        />
      </Drawer>
    </>
  )
}
