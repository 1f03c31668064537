import { Button } from '@mantine/core'
import { MailX, Plus } from 'lucide-react'
import { useState } from 'react'
import type { EmailSuppression } from '../../../sdk/src/generated/schemas.ts'
import { callAny } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { List } from '../parts/list.tsx'
import { PageHead, useProject } from '../parts/page.tsx'
import { done, Empty, When } from '../parts/states.tsx'

const reasons: Readonly<Record<string, string>> = {
  bounce: 'It bounced',
  complaint: 'Marked as spam',
  unsubscribe: 'Unsubscribed',
  manual: 'By hand',
}

/** Addresses that get no mail, and why. */
export const Page = () => {
  const { path } = useProject()
  const [isAdding, setAdding] = useState(false)
  const [lifted, setLifted] = useState<EmailSuppression>()
  const add = (
    <Button leftSection={<Plus size={16} />} onClick={() => setAdding(true)}>
      Add an address
    </Button>
  )
  return (
    <>
      <PageHead title="Suppressions" about="Addresses that get no mail" actions={add} />
      <List<EmailSuppression>
        name="Suppressions"
        operation="GET /v1/admin/projects/{projectId}/email/suppressions"
        columns={[
          { title: 'Address', show: (row) => row.address },
          { title: 'Why', show: (row) => reasons[row.reason] ?? row.reason },
          { title: 'Of', show: (row) => row.category ?? 'all mail' },
          { title: 'Since', show: (row) => <When at={row.created_at} /> },
          {
            title: 'Actions',
            show: (row) => (
              <Button size="compact-sm" variant="default" onClick={() => setLifted(row)}>
                Lift
              </Button>
            ),
          },
        ]}
        empty={
          <Empty icon={<MailX size={22} />} title="No address is suppressed" action={add}>
            Addresses that bounce, complain or unsubscribe are kept here, so that nobody writes to them again.
          </Empty>
        }
      />
      <Drawer opened={isAdding} onClose={() => setAdding(false)} title="Add an address">
        <OperationForm
          operation="POST /v1/admin/projects/{projectId}/email/suppressions"
          verb="Add"
          preset={{ reason: 'manual' }}
          words={{ reason: { choices: reasons } }}
          onCancel={() => setAdding(false)}
          onDone={() => {
            setAdding(false)
            done('It gets no more mail.')
          }}
        />
      </Drawer>
      <Confirm
        title="Lift the suppression"
        verb="Lift"
        said={`${lifted?.address} gets mail again.`}
        isOpen={lifted !== undefined}
        isDangerous={false}
        onClose={() => setLifted(undefined)}
        run={() =>
          callAny('DELETE /v1/admin/projects/{projectId}/email/suppressions', {
            path,
            query: { address: lifted?.address, ...(lifted?.category ? { category: lifted.category } : {}) },
          })
        }
      >
        {lifted?.address} gets mail again. An address that bounced may bounce again.
      </Confirm>
    </>
  )
}
