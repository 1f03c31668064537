import { Button, SegmentedControl } from '@mantine/core'
import { Mail } from 'lucide-react'
import { useState } from 'react'
import type { EmailMessage } from '../../../sdk/src/generated/schemas.ts'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { List } from '../parts/list.tsx'
import { Facts, PageHead, useAddress } from '../parts/page.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { count, done, Empty, When } from '../parts/states.tsx'
import { Id, Status } from '../parts/status.tsx'

/** Every mail of the project with what became of it. */
export const Page = () => {
  const [{ status }, setAddress] = useAddress<'status'>()
  const [shown, setShown] = useState<EmailMessage>()
  const [isSending, setSending] = useState(false)
  return (
    <>
      <PageHead
        title="Messages"
        about="Every mail with what became of it"
        actions={<Button onClick={() => setSending(true)}>Send a mail</Button>}
      />
      <div className="scroll-x">
        <SegmentedControl
          size="xs"
          mb="sm"
          aria-label="Status"
          value={status ?? ''}
          onChange={(next) => setAddress({ status: next || undefined })}
          data={[
            { value: '', label: 'All' },
            { value: 'queued', label: 'On their way' },
            { value: 'delivered', label: 'Delivered' },
            { value: 'bounced', label: 'Bounced' },
            { value: 'failed', label: 'Failed' },
          ]}
        />
      </div>
      <List<EmailMessage>
        name="Messages"
        operation="GET /v1/admin/projects/{projectId}/email/messages"
        query={{ status }}
        onOpen={setShown}
        columns={[
          {
            title: 'Mail',
            show: (mail) => (
              <>
                <RowButton onClick={() => setShown(mail)}>{mail.subject}</RowButton>
                <span className="cell-sub">{mail.to}</span>
              </>
            ),
          },
          { title: 'Template', show: (mail) => mail.template_key ?? 'written by hand' },
          { title: 'Status', show: (mail) => <Status value={mail.status} /> },
          { title: 'When', show: (mail) => <When at={mail.sent_at ?? mail.send_at} none="waits" /> },
        ]}
        empty={
          <Empty icon={<Mail size={22} />} title={status ? 'None of these' : 'No mail yet'}>
            Sign-in codes, receipts and campaigns stand here as they go out.
          </Empty>
        }
      />
      <Drawer opened={shown !== undefined} onClose={() => setShown(undefined)} title={shown?.subject ?? ''}>
        {shown && (
          <Facts
            facts={[
              ['To', shown.to],
              ['From', shown.from],
              ['Status', <Status key="status" value={shown.status} />],
              ['Attempts', count(shown.attempts)],
              ['Why', shown.last_error],
              ['Sent', <When key="sent" at={shown.sent_at} />],
              ['Opened', <When key="opened" at={shown.opened_at} none="not that we know" />],
              ['Id', <Id key="id" value={shown.id} />],
            ]}
          />
        )}
      </Drawer>
      <Drawer opened={isSending} onClose={() => setSending(false)} title="Send a mail">
        <OperationForm
          operation="POST /v1/admin/projects/{projectId}/email/send"
          verb="Send"
          onCancel={() => setSending(false)}
          onDone={() => {
            setSending(false)
            done('The mail is on its way.')
          }}
        />
      </Drawer>
    </>
  )
}
