import { Alert, Button, Group, Stack, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { ScrollText, ShieldCheck } from 'lucide-react'
import { useState } from 'react'
import { getProject, listOrganizationMembers, verifyAuditEvents } from '../../../sdk/src/generated/admin.ts'
import type { OrganizationAuditEvent } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { List } from '../parts/list.tsx'
import { Facts, PageHead, useAddress, useProject } from '../parts/page.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { count, Empty, Failure, When } from '../parts/states.tsx'
import { Id } from '../parts/status.tsx'

const said = (value: unknown): string =>
  value === null || value === undefined ? 'nothing' : typeof value === 'object' ? 'a new value' : String(value)

/** Who did it: a member by their address, a program by its name, else what kind of caller it was. */
const useActors = (orgId: string | undefined) => {
  const { data } = useQuery({
    queryKey: ['members', orgId],
    enabled: orgId !== undefined,
    staleTime: 300_000,
    queryFn: () => call(listOrganizationMembers, { path: { orgId: orgId ?? '' }, query: { limit: 100 } }),
  })
  const emails = new Map(data?.data.map(({ developer_id, email }) => [developer_id, email]))
  return ({ actor }: OrganizationAuditEvent) =>
    emails.get(actor.id ?? '') ?? actor.label ?? actor.type.replace(/_/g, ' ')
}
const words = (action: string) => action.replace(/[._]/g, ' ')

/** The rows of an audit trail, each with what was changed. */
export const AuditList = ({
  operation,
  path,
  orgId,
}: {
  operation: string
  path?: Readonly<Record<string, string>>
  /** Whose members they are who did it. */
  orgId: string | undefined
}) => {
  const actorOf = useActors(orgId)
  const [{ action }, setAddress] = useAddress<'action'>()
  const [shown, setShown] = useState<OrganizationAuditEvent>()
  return (
    <>
      <Group mb="sm">
        <TextInput
          aria-label="Action"
          placeholder="Action, such as flags.update"
          defaultValue={action ?? ''}
          w={280}
          maw="100%"
          onKeyDown={(event) => {
            if (event.key === 'Enter') void setAddress({ action: event.currentTarget.value || undefined })
          }}
          onBlur={(event) => setAddress({ action: event.currentTarget.value || undefined })}
        />
      </Group>
      <List<OrganizationAuditEvent>
        name="Audit"
        operation={operation}
        {...(path ? { path } : {})}
        query={{ action }}
        onOpen={setShown}
        columns={[
          {
            title: 'What',
            show: (row) => (
              <>
                <RowButton onClick={() => setShown(row)}>{words(row.action)}</RowButton>
                <span className="cell-sub">{row.target.type.replace(/_/g, ' ')}</span>
              </>
            ),
          },
          { title: 'Who', show: actorOf },
          {
            title: 'Changed',
            show: (row) => Object.keys(row.changes).slice(0, 3).join(', ').replace(/_/g, ' ') || '—',
          },
          { title: 'When', show: (row) => <When at={row.occurred_at} /> },
        ]}
        empty={
          <Empty icon={<ScrollText size={22} />} title={action ? `Nothing called “${action}”` : 'Nothing yet'}>
            What developers, programs and keys change stands here, and cannot be changed any more.
          </Empty>
        }
      />
      <Drawer opened={shown !== undefined} onClose={() => setShown(undefined)} title={shown ? words(shown.action) : ''}>
        {shown && (
          <Stack>
            <Facts
              facts={[
                ['Who', actorOf(shown)],
                ['When', <When key="when" at={shown.occurred_at} />],
                ['What', shown.target.type.replace(/_/g, ' ')],
                ['Its id', shown.target.id ? <Id key="id" value={shown.target.id} /> : undefined],
                ['From', shown.ip],
                ['Answer', String(shown.status)],
                ['Request', shown.request_id ? <Id key="request" value={shown.request_id} /> : undefined],
              ]}
            />
            {Object.keys(shown.changes).length > 0 && (
              <table className="table" aria-label="Changes">
                <thead>
                  <tr>
                    <th scope="col">Field</th>
                    <th scope="col">Before</th>
                    <th scope="col">After</th>
                  </tr>
                </thead>
                <tbody>
                  {Object.entries(shown.changes).map(([name, [before, after]]) => (
                    <tr key={name}>
                      <th scope="row">{name.replace(/_/g, ' ')}</th>
                      <td>{said(before)}</td>
                      <td>{said(after)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </Stack>
        )}
      </Drawer>
    </>
  )
}

/** Who changed what in the project, and whether the trail is whole. */
export const Page = () => {
  const { path } = useProject()
  const { data } = useQuery({ queryKey: ['project', path.projectId], queryFn: () => call(getProject, { path }) })
  const verify = useMutation({ mutationFn: async () => (await call(verifyAuditEvents, { path })).data })
  return (
    <>
      <PageHead
        title="Audit"
        about="Who changed what; each row is chained to the one before"
        actions={
          <Button
            variant="default"
            leftSection={<ShieldCheck size={16} />}
            loading={verify.isPending}
            onClick={() => verify.mutate()}
          >
            Verify the trail
          </Button>
        }
      />
      {verify.error && <Failure error={verify.error} onRetry={() => verify.mutate()} />}
      {verify.data && (
        <Alert
          mb="md"
          role="status"
          color={verify.data.verified ? 'leaf' : 'red'}
          title={verify.data.verified ? 'The trail is whole' : 'The trail is broken'}
        >
          {verify.data.verified
            ? `${count(verify.data.checked)} rows checked; ${count(verify.data.unsealed)} of the latest are not sealed yet.`
            : `A row was changed, removed or inserted at ${verify.data.first_broken_id}.`}
        </Alert>
      )}
      <AuditList operation="GET /v1/admin/projects/{projectId}/audit-events" orgId={data?.data.organization_id} />
    </>
  )
}
