import { Bell, Mail, MessageSquare } from 'lucide-react'
import type { Row } from '../api.ts'
import { ListCard } from '../parts/list_card.tsx'
import { ProjectLink } from '../parts/page.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useUser } from './one_user.ts'

const reasons: Readonly<Record<string, string>> = {
  no_token: 'no device',
  opted_out: 'switched off by the user',
  quiet_hours: 'quiet hours',
  capped: 'too many lately',
  holdout: 'in the group that gets nothing',
  cancelled: 'cancelled',
}

/** What was sent to a user, and the conversations that it takes part in. */
export const Messages = () => {
  const { path } = useUser()
  const query = { user_id: path.userId }
  return (
    <div className="column">
      <ListCard<Row>
        title="Push"
        operation="GET /v1/admin/projects/{projectId}/push/deliveries"
        query={query}
        columns={[
          {
            title: 'From',
            show: (one) =>
              one['campaign_id'] ? (
                <ProjectLink to={`push/${one['campaign_id']}`}>a campaign</ProjectLink>
              ) : one['automation_id'] ? (
                'an automation'
              ) : (
                'your team or server'
              ),
          },
          { title: 'Status', show: (one) => <Status value={String(one['status'])} /> },
          { title: 'Why', show: (one) => reasons[String(one['reason'])] ?? String(one['code'] ?? '—') },
          { title: 'Due', show: (one) => <When at={one['due_at'] as string} /> },
          { title: 'Opened', show: (one) => <When at={one['opened_at'] as string | null} none="no" /> },
        ]}
        empty={<Empty icon={<Bell size={22} />} title="No push messages yet" />}
      />
      <ListCard<Row>
        title="Email"
        operation="GET /v1/admin/projects/{projectId}/email/messages"
        query={query}
        columns={[
          { title: 'Subject', show: (one) => <b>{String(one['subject'])}</b> },
          { title: 'Status', show: (one) => <Status value={String(one['status'])} /> },
          { title: 'Sent', show: (one) => <When at={(one['sent_at'] ?? one['created_at']) as string} /> },
          { title: 'Opened', show: (one) => <When at={one['opened_at'] as string | null} none="no" /> },
        ]}
        empty={<Empty icon={<Mail size={22} />} title="No emails in 90 days" />}
      />
      <ListCard<Row>
        title="Conversations"
        operation="GET /v1/admin/projects/{projectId}/messaging/conversations"
        query={query}
        columns={[
          {
            title: 'Conversation',
            show: (one) => (
              <ProjectLink to={`conversations/${one['id']}`}>
                {String(one['name'] ?? (one['type'] === 'direct' ? 'Between two' : 'A group'))}
              </ProjectLink>
            ),
          },
          { title: 'Messages', isNumber: true, show: (one) => count(one['message_count'] as number) },
          { title: 'Last', show: (one) => <When at={one['last_activity_at'] as string} /> },
        ]}
        empty={<Empty icon={<MessageSquare size={22} />} title="In no conversation" />}
      />
    </div>
  )
}
