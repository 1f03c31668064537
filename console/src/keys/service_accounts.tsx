import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Bot, Plus } from 'lucide-react'
import { useState } from 'react'
import { deleteServiceAccount, getProject, rotateServiceAccountKey } from '../../../sdk/src/generated/admin.ts'
import type { ServiceAccount } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { List } from '../parts/list.tsx'
import { PageHead, useProject } from '../parts/page.tsx'
import { Empty, Failure, Rows, When } from '../parts/states.tsx'
import { Secret } from './secret.tsx'

type Asked = { readonly what: 'rotate' | 'delete'; readonly account: ServiceAccount }

/** Accounts of programs, which belong to the organization and not to a person who may leave. */
export const Page = () => {
  const { path } = useProject()
  const project = useQuery({ queryKey: ['project', path.projectId], queryFn: () => call(getProject, { path }) })
  const organizationId = project.data?.data.organization_id
  const [isMaking, setMaking] = useState(false)
  const [made, setMade] = useState<string>()
  const [asked, setAsked] = useState<Asked>()
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => setMaking(true)}>
      New service account
    </Button>
  )
  const name = asked?.account.name
  return (
    <>
      <PageHead
        title="Service accounts"
        about="For programs: they belong to the organization, and stay when a person leaves"
        actions={make}
      />
      {!organizationId &&
        (project.error ? <Failure error={project.error} onRetry={project.refetch} /> : <Rows count={3} />)}
      {organizationId && (
        <List<ServiceAccount>
          name="Service accounts"
          operation="GET /v1/admin/service-accounts"
          query={{ organization_id: organizationId }}
          columns={[
            { title: 'Name', show: (account) => account.name },
            { title: 'May', show: (account) => account.scopes.join(', ') },
            { title: 'Projects', show: (account) => account.project_ids?.length ?? 'all' },
            { title: 'Last used', show: (account) => <When at={account.last_used_at} none="never" /> },
            {
              title: 'Actions',
              show: (account) => (
                <Button.Group>
                  <Button size="compact-sm" variant="default" onClick={() => setAsked({ what: 'rotate', account })}>
                    Rotate
                  </Button>
                  <Button size="compact-sm" variant="default" onClick={() => setAsked({ what: 'delete', account })}>
                    Delete
                  </Button>
                </Button.Group>
              ),
            },
          ]}
          empty={
            <Empty icon={<Bot size={22} />} title="No service accounts yet" action={make}>
              Give continuous integration and other programs an account of their own.
            </Empty>
          }
        />
      )}
      <Drawer opened={isMaking} onClose={() => setMaking(false)} title="New service account">
        <OperationForm
          operation="POST /v1/admin/service-accounts"
          verb="Create service account"
          fixed={{ organization_id: organizationId, project_ids: [path.projectId] }}
          words={{ organization_id: { isHidden: true }, project_ids: { isHidden: true } }}
          onCancel={() => setMaking(false)}
          onDone={(account) => {
            setMaking(false)
            setMade((account as { key: string }).key)
          }}
        />
      </Drawer>
      <Secret title="Its key" text={made} about="The program signs in with it." onClose={() => setMade(undefined)} />
      <Confirm
        title={asked?.what === 'rotate' ? 'A new key' : 'Delete the service account'}
        verb={asked?.what === 'rotate' ? 'Make a new key' : 'Delete'}
        said={asked?.what === 'rotate' ? `“${name}” has a new key.` : `“${name}” is deleted.`}
        isOpen={asked !== undefined}
        onClose={() => setAsked(undefined)}
        run={async () => {
          const input = { path: { serviceAccountId: asked?.account.id ?? '' } }
          if (asked?.what === 'delete') return call(deleteServiceAccount, input)
          const { data } = await call(rotateServiceAccountKey, input)
          setMade((data as unknown as { key: string }).key)
          return data
        }}
      >
        Whatever uses the key of “{name}” is refused from now on.
      </Confirm>
    </>
  )
}
