import { Skeleton, Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getOrganization } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { PageHead, useAddress, useParam } from '../parts/page.tsx'
import { Failure } from '../parts/states.tsx'
import { AuditList } from '../team/audit.tsx'
import { Invite, Team } from '../team/members.tsx'
import { Limits } from './limits.tsx'
import { OrganizationSettings } from './organization_settings.tsx'

/** An organization: its members, who is invited, what it may spend, its name, and what was changed in it. */
export const Page = () => {
  const orgId = useParam('organizationId')
  const [{ tab = 'members' }, setAddress] = useAddress<'tab'>()
  const { data, error, refetch } = useQuery({
    queryKey: ['organization', orgId],
    queryFn: () => call(getOrganization, { path: { orgId } }),
  })
  return (
    <>
      <PageHead
        title={data?.data.name ?? 'Organization'}
        about="Its members work on all its projects"
        actions={data && <Invite orgId={orgId} />}
      />
      {error && <Failure error={error} onRetry={refetch} />}
      {!data && !error && <Skeleton h={160} />}
      {data && (
        <Tabs value={tab} onChange={(next) => setAddress({ tab: next ?? undefined })} keepMounted={false}>
          <Tabs.List mb="md">
            <Tabs.Tab value="members">Members</Tabs.Tab>
            <Tabs.Tab value="limits">Limits</Tabs.Tab>
            <Tabs.Tab value="settings">Settings</Tabs.Tab>
            <Tabs.Tab value="audit">Audit</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="members">
            <Team orgId={orgId} />
          </Tabs.Panel>
          <Tabs.Panel value="limits">
            <Limits orgId={orgId} />
          </Tabs.Panel>
          <Tabs.Panel value="settings">
            <OrganizationSettings organization={data.data} />
          </Tabs.Panel>
          <Tabs.Panel value="audit">
            <AuditList operation="GET /v1/admin/organizations/{orgId}/audit-events" path={{ orgId }} orgId={orgId} />
          </Tabs.Panel>
        </Tabs>
      )}
    </>
  )
}
