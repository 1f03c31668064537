import { Anchor, Button, Progress, Skeleton, Stack, Text } from '@mantine/core'
import { useQueries, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { FolderPlus } from 'lucide-react'
import type { ReactNode } from 'react'
import { listOrganizationInvites, listOrganizationMembers, listProjects } from '../../../sdk/src/generated/admin.ts'
import type { Billing } from '../../../sdk/src/generated/schemas.ts'
import { dollars } from '../ai/data.ts'
import { call } from '../api.ts'
import { bytes } from '../files/data.ts'
import { billingOf } from '../parts/billing.ts'
import { Figure } from '../parts/chart.tsx'
import { useChosen } from '../parts/chosen.ts'
import { SpendingLimit } from '../parts/spending_limit.tsx'
import { count, Empty, Failure, Rows } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'

/** What an organization may have: docs/organizations.md. */
const mostMembers = 100
const mostInvites = 50

const Used = ({
  label,
  used,
  limit,
  show,
}: {
  label: string
  used: number
  limit: number | null
  show: (n: number) => string
}) => {
  const share = limit === null ? 0 : limit === 0 ? 100 : Math.min(100, (used / limit) * 100)
  if (limit === null)
    return (
      <>
        {show(used)}
        <span className="cell-sub">no limit</span>
      </>
    )
  return (
    <>
      {show(used)} of {show(limit)}
      <Progress
        mt={4}
        miw={90}
        value={share}
        color={share >= 100 ? 'red' : share > 80 ? 'yellow' : 'leaf'}
        aria-label={`${label}: ${Math.round(share)} %`}
      />
    </>
  )
}

/** What an organization and its projects may have and spend, and what they did of it. */
export const Limits = ({ orgId }: { orgId: string }) => {
  const { one: changed, isOpen, choose, close } = useChosen<string>()
  const path = { orgId }
  const members = useQuery({
    queryKey: ['organization members', orgId],
    queryFn: () => call(listOrganizationMembers, { path, query: { limit: 1 } }),
  })
  const invites = useQuery({
    queryKey: ['organization invites', orgId],
    queryFn: async () => {
      const { data } = await call(listOrganizationInvites, { path, query: { limit: 100 } })
      return data.filter(({ status }) => status === 'pending').length
    },
  })
  const projects = useQuery({
    queryKey: ['projects', orgId],
    queryFn: () => call(listProjects, { query: { organization_id: orgId } }),
  })
  const all = projects.data?.data ?? []
  const billings = useQueries({
    queries: all.map(({ id }) => billingOf(id)),
  })
  const spent = billings.every(({ data }) => data)
    ? billings.reduce((sum, { data }) => sum + (data?.usage.ai_spend_usd.used ?? 0), 0)
    : undefined
  const chosen = all.find(({ id }) => id === changed)
  return (
    <Stack gap="md">
      <div className="cards">
        <Figure title="Members" value={count(members.data?.total)} about={`of at most ${mostMembers}`} />
        <Figure title="Open invites" value={count(invites.data)} about={`of at most ${mostInvites}, 20 an hour`} />
        <Figure title="Projects" value={count(projects.data && all.length)} about="each with limits of its own" />
        <Figure title="Spent this month" value={dollars(spent)} about="by AI, in all projects" />
      </div>
      {projects.error && <Failure error={projects.error} onRetry={projects.refetch} />}
      {projects.isPending && <Rows count={3} />}
      {projects.data && all.length === 0 && (
        <div className="card">
          <Empty icon={<FolderPlus size={22} />} title="It has no projects">
            What each project may spend stands here. Projects are given to an organization under Settings, Danger.
          </Empty>
        </div>
      )}
      {all.length > 0 && (
        <div className="card" data-flush>
          <section className="scroll-x" tabIndex={0} aria-label="Limits of projects: rows">
            <table className="table" data-stack aria-label="Limits of projects">
              <thead>
                <tr>
                  {['Project', 'Plan', 'Spent by AI this month', 'Stored files', 'Active users', 'Actions'].map(
                    (title) => (
                      <th key={title} scope="col">
                        {title}
                      </th>
                    ),
                  )}
                </tr>
              </thead>
              <tbody>
                {all.map(({ id, name, effective_tier, comped }, n) => {
                  const { data, error } = billings[n] ?? {}
                  const shown = (what: (billing: Billing) => ReactNode) =>
                    data ? what(data) : error ? 'not known' : <Skeleton h={14} w={80} />
                  return (
                    <tr key={id}>
                      <td>
                        <Anchor component={Link} to={`/projects/${id}/settings/usage` as never} size="sm">
                          {name}
                        </Anchor>
                      </td>
                      <td data-label="Plan">
                        <Status value={comped ? `${effective_tier}, given` : effective_tier} />
                      </td>
                      <td data-label="Spent by AI this month">
                        <div>
                          {shown(({ usage, spend_ceiling_usd }) => (
                            <Used
                              label={`Spending of ${name}`}
                              used={usage.ai_spend_usd.used}
                              limit={spend_ceiling_usd}
                              show={dollars}
                            />
                          ))}
                        </div>
                      </td>
                      <td data-label="Stored files">
                        <div>
                          {shown(
                            ({
                              usage: {
                                media_storage: { used, limit },
                              },
                            }) => (
                              <Used label={`Files of ${name}`} used={used} limit={limit} show={bytes} />
                            ),
                          )}
                        </div>
                      </td>
                      <td data-label="Active users">{shown(({ usage }) => count(usage.mau.used))}</td>
                      <td data-label="Actions">
                        <Button
                          size="compact-sm"
                          variant="default"
                          aria-label={`Spending limit of ${name}`}
                          disabled={!data}
                          onClick={() => choose(id)}
                        >
                          Spending limit
                        </Button>
                      </td>
                    </tr>
                  )
                })}
              </tbody>
            </table>
          </section>
        </div>
      )}
      <Text size="sm" c="dimmed">
        Months are those of UTC. Plans are changed by who runs this server, or where it sells them, on the project’s
        page.
      </Text>
      {chosen && (
        <SpendingLimit
          projectId={chosen.id}
          name={chosen.name}
          limit={billings[all.indexOf(chosen)]?.data?.spend_ceiling_usd ?? null}
          isOpen={isOpen}
          onClose={close}
        />
      )}
    </Stack>
  )
}
