import { Button, Group, Progress, Skeleton, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { createBillingPortal, getUsage } from '../../../sdk/src/generated/admin.ts'
import type { Billing } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { useBilling } from '../parts/billing.ts'
import { Chart, type Point } from '../parts/chart.tsx'
import { Card, PageHead, useProject } from '../parts/page.tsx'
import { SpendingLimit } from '../parts/spending_limit.tsx'
import { count, Failure, failed } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'

const bytes = (value: number) => {
  const unit = value >= 2 ** 30 ? 2 ** 30 : 2 ** 20
  return `${count(Math.round((value / unit) * 10) / 10)} ${unit === 2 ** 30 ? 'GB' : 'MB'}`
}
type Meters = Billing['usage']
const titles: Readonly<Partial<Record<keyof Meters, readonly [string, (value: number) => string]>>> = {
  mau: ['Active users of the month', count],
  events: ['Events', count],
  api_requests: ['Requests', count],
  push_sent: ['Pushes', count],
  emails_sent: ['Mails', count],
  media_storage: ['Stored files', bytes],
  egress_bytes: ['Sent bytes', bytes],
  ai_spend_usd: ['AI', (value) => `$${value.toFixed(2)}`],
}
const dayBefore = (days: number) => new Date(Date.now() - days * 864e5).toISOString().slice(0, 10)

const Meter = ({
  title,
  show,
  used,
  limit,
}: {
  title: string
  show: (value: number) => string
  used: number
  limit: number | null
}) => {
  const share = limit === 0 ? 100 : limit ? Math.min(100, (used / limit) * 100) : 0
  return (
    <div>
      <Group justify="space-between">
        <Text size="sm">{title}</Text>
        <Text size="sm" c="dimmed">
          {show(used)}
          {limit === null ? ', no limit' : ` of ${show(limit)}`}
        </Text>
      </Group>
      {limit !== null && (
        <Progress
          mt={4}
          value={share}
          color={share >= 100 ? 'red' : share > 80 ? 'yellow' : 'leaf'}
          aria-label={`${title}: ${Math.round(share)} %`}
        />
      )}
    </div>
  )
}

/** What the plan of the project allows, what was used of it, and where the plan is changed. */
export const Page = () => {
  const { path } = useProject()
  const [isCapping, setCapping] = useState(false)
  const billing = useBilling()
  const usage = useQuery({
    queryKey: ['usage', path.projectId, 'month'],
    queryFn: () => call(getUsage, { path, query: { from: dayBefore(29), to: dayBefore(0) } }),
  })
  const portal = useMutation({
    mutationFn: async () => (await call(createBillingPortal, { path })).data as unknown as { url: string },
    onSuccess: ({ url }) => location.assign(url),
    onError: failed,
  })
  const { data } = billing
  const series = usage.data?.data.series as Readonly<Record<string, readonly Point[]>> | undefined
  return (
    <>
      <PageHead
        title="Limits and billing"
        about="What the plan allows, and what was used of it"
        actions={
          <>
            <Button variant="default" onClick={() => setCapping(true)}>
              Set a spending limit
            </Button>
            {data?.configured && (
              <Button variant="default" loading={portal.isPending} onClick={() => portal.mutate()}>
                Invoices
              </Button>
            )}
          </>
        }
      />
      {billing.error && <Failure error={billing.error} onRetry={billing.refetch} />}
      {!data && !billing.error && <Skeleton h={320} />}
      {data && (
        <div className="split">
          <div className="column">
            <Chart
              title="Requests"
              points={series?.['api_requests']}
              kind="bar"
              error={usage.error}
              onRetry={usage.refetch}
            />
            <Chart title="Events" points={series?.['events']} kind="bar" error={usage.error} onRetry={usage.refetch} />
          </div>
          <Card title="This month" actions={<Status value={data.effective_tier} />}>
            <Stack gap="md">
              {Object.entries(titles).map(([name, [title, show]]) => {
                const { used, limit } = data.usage[name as keyof Meters]
                // the limit that the team has set itself
                const own = name === 'ai_spend_usd' ? data.spend_ceiling_usd : null
                return <Meter key={name} title={title} show={show} used={used} limit={own ?? limit} />
              })}
            </Stack>
          </Card>
        </div>
      )}
      <SpendingLimit
        projectId={path.projectId}
        limit={data?.spend_ceiling_usd ?? null}
        isOpen={isCapping}
        onClose={() => setCapping(false)}
      />
    </>
  )
}
