import { Button, SegmentedControl, Switch } from '@mantine/core'
import { BadgeCheck, Plus } from 'lucide-react'
import { setModerationTrust } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { List } from '../parts/list.tsx'
import { PageHead, useAddress, useProject } from '../parts/page.tsx'
import { done, Empty, failed, useRefresh, When } from '../parts/states.tsx'
import { UserName } from '../parts/users.tsx'

type Trust = {
  readonly app_user_id: string
  readonly user?: { readonly display_name: string | null } | null
  readonly trust_level: 'new' | 'trusted' | 'moderator'
  readonly auto_approve: boolean
  readonly updated_at: string
}
const levels = [
  { value: 'new', label: 'New' },
  { value: 'trusted', label: 'Trusted' },
  { value: 'moderator', label: 'Moderator' },
]

/** Whom the team trusts, for the app and for those who moderate. */
export const Page = () => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [{ add }, setAddress] = useAddress<'add'>()
  const write = async (before: Trust, next: Partial<Trust>) => {
    const { app_user_id, trust_level, auto_approve } = before
    const send = async (change: Partial<Trust>) => {
      await call(setModerationTrust, { path, body: { app_user_id, trust_level, auto_approve, ...change } })
      await refresh()
    }
    await send(next)
    done('Saved.', () => send({}))
  }
  const give = (
    <Button leftSection={<Plus size={16} />} onClick={() => setAddress({ add: 'yes' }, false)}>
      Trust a user
    </Button>
  )
  return (
    <>
      <PageHead
        title="Trust"
        about="Notes of how far your team trusts single users. Trellis acts on none of them: that is for your app"
        actions={give}
      />
      <List<Trust>
        name="Trust"
        operation="GET /v1/admin/projects/{projectId}/moderation/trust"
        query={{ include: 'user' }}
        keyOf={(trust) => trust.app_user_id}
        columns={[
          { title: 'User', show: (trust) => <UserName id={trust.app_user_id} user={trust.user} /> },
          {
            title: 'Level',
            show: (trust) => (
              <SegmentedControl
                size="xs"
                aria-label="Level"
                data={levels}
                value={trust.trust_level}
                onChange={(trust_level) => write(trust, { trust_level: trust_level as 'new' }).catch(failed)}
              />
            ),
          },
          {
            title: 'Approve at once',
            show: (trust) => (
              <Switch
                aria-label="Approve at once"
                checked={trust.auto_approve}
                onChange={(event) => write(trust, { auto_approve: event.currentTarget.checked }).catch(failed)}
              />
            ),
          },
          { title: 'Changed', show: (trust) => <When at={trust.updated_at} /> },
        ]}
        empty={
          <Empty icon={<BadgeCheck size={22} />} title="Nobody has a level yet" action={give}>
            Everybody begins as new. A level is a note for your app and your moderators.
          </Empty>
        }
      />
      <Drawer opened={add === 'yes'} onClose={() => setAddress({ add: undefined })} title="Trust a user">
        <OperationForm
          operation="POST /v1/admin/projects/{projectId}/moderation/trust"
          verb="Save"
          preset={{ trust_level: 'trusted' }}
          words={{
            app_user_id: { title: 'User' },
            trust_level: { title: 'Level', choices: { new: 'New', trusted: 'Trusted', moderator: 'Moderator' } },
            auto_approve: { title: 'Approve at once' },
          }}
          onCancel={() => setAddress({ add: undefined })}
          onDone={() => {
            void setAddress({ add: undefined })
            done('Saved.')
          }}
        />
      </Drawer>
    </>
  )
}
