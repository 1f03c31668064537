import { Button, Group, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Globe, Plus } from 'lucide-react'
import { useState } from 'react'
import { deleteDomain, verifyDomain } from '../../../sdk/src/generated/admin.ts'
import type { Domain } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { List, ShortTable } from '../parts/list.tsx'
import { PageHead, useProject } from '../parts/page.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { done, Empty, failed, useRefresh, When } from '../parts/states.tsx'
import { Copied, Status } from '../parts/status.tsx'

const kinds: Readonly<Record<string, string>> = { email: 'Mail', site: 'Site', function: 'Functions' }

const Records = ({ domain }: { domain: Domain }) => (
  <>
    <Text size="sm" c="dimmed" mb="sm">
      Enter these records at whoever runs the name. Then press Check.
    </Text>
    <ShortTable
      name="Records"
      rows={domain.dns_records}
      keyOf={({ type, name, value }) => `${type} ${name} ${value}`}
      columns={[
        {
          title: 'Record',
          show: ({ type, name }) => (
            <>
              {type}
              <span className="cell-sub mono">{name}</span>
            </>
          ),
        },
        {
          title: 'Value',
          show: ({ value }) => (
            <Group gap={4} wrap="nowrap">
              <span className="mono breakable">{value}</span>
              <Copied value={value} label="Copy the value" />
            </Group>
          ),
        },
        {
          title: 'Found',
          show: ({ verified }) => <Status value={verified ? 'yes' : 'not yet'} meaning={verified ? 'good' : 'warn'} />,
        },
      ]}
    />
  </>
)

/** Names that mail and pages of this project use, and the records that prove them. */
export const Page = () => {
  const { path } = useProject()
  const [isAdding, setAdding] = useState(false)
  const [shown, setShown] = useState<Domain>()
  const [removed, setRemoved] = useState<Domain>()
  const refresh = useRefresh()
  const check = useMutation({
    mutationFn: async (domainId: string) => (await call(verifyDomain, { path: { ...path, domainId } })).data as Domain,
    onSuccess: async (domain) => {
      done(domain.status === 'verified' ? `${domain.domain} is verified.` : 'Not all records are there yet.')
      if (shown) setShown(domain)
      await refresh()
    },
    onError: failed,
  })
  const add = (
    <Button leftSection={<Plus size={16} />} onClick={() => setAdding(true)}>
      Add domain
    </Button>
  )
  return (
    <>
      <PageHead title="Domains" about="Names that mail and pages of this project use" actions={add} />
      <List<Domain>
        name="Domains"
        operation="GET /v1/admin/projects/{projectId}/domains"
        onOpen={setShown}
        columns={[
          {
            title: 'Name',
            show: (domain) => <RowButton onClick={() => setShown(domain)}>{domain.domain}</RowButton>,
          },
          { title: 'For', show: (domain) => kinds[domain.kind] ?? domain.kind },
          { title: 'Status', show: (domain) => <Status value={domain.status} /> },
          { title: 'Checked', show: (domain) => <When at={domain.last_checked_at} none="not yet" /> },
          {
            title: 'Actions',
            show: (domain) => (
              <Button.Group>
                <Button
                  size="compact-sm"
                  variant="default"
                  loading={check.isPending && check.variables === domain.id}
                  onClick={() => check.mutate(domain.id)}
                >
                  Check
                </Button>
                <Button size="compact-sm" variant="default" onClick={() => setRemoved(domain)}>
                  Remove
                </Button>
              </Button.Group>
            ),
          },
        ]}
        empty={
          <Empty icon={<Globe size={22} />} title="No domains yet" action={add}>
            Mail from a name of your own arrives more often, and looks like yours.
          </Empty>
        }
      />
      <Drawer opened={isAdding} onClose={() => setAdding(false)} title="Add a domain">
        <OperationForm
          operation="POST /v1/admin/projects/{projectId}/domains"
          verb="Add domain"
          preset={{ kind: 'email' }}
          words={{ kind: { title: 'For', choices: kinds } }}
          onCancel={() => setAdding(false)}
          onDone={(domain) => {
            setAdding(false)
            setShown(domain as Domain)
          }}
        />
      </Drawer>
      <Drawer opened={shown !== undefined} onClose={() => setShown(undefined)} title={shown?.domain ?? ''} size="xl">
        {shown && (
          <>
            <Records domain={shown} />
            <Group justify="flex-end" mt="md">
              <Button loading={check.isPending} onClick={() => check.mutate(shown.id)}>
                Check
              </Button>
            </Group>
          </>
        )}
      </Drawer>
      <Confirm
        title="Remove the domain"
        verb="Remove"
        said={`${removed?.domain} is removed.`}
        isOpen={removed !== undefined}
        onClose={() => setRemoved(undefined)}
        run={() => call(deleteDomain, { path: { ...path, domainId: removed?.id ?? '' } })}
      >
        Mail from {removed?.domain} is refused from now on.
      </Confirm>
    </>
  )
}
