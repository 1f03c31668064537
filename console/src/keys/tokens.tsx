import { Button } from '@mantine/core'
import { KeyRound, Plus } from 'lucide-react'
import { useState } from 'react'
import { revokeAccessToken } from '../../../sdk/src/generated/admin.ts'
import type { AccessToken } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { List } from '../parts/list.tsx'
import { PageHead, useProject } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { Secret } from './secret.tsx'

const stateOf = ({ revoked_at, expires_at }: AccessToken) =>
  revoked_at ? 'revoked' : expires_at && Date.parse(expires_at) < Date.now() ? 'expired' : 'active'

/** The developer's own access tokens, for scripts and the command line. */
export const Page = () => {
  const { projectId } = useProject()
  const [isMaking, setMaking] = useState(false)
  const [made, setMade] = useState<string>()
  const [ended, setEnded] = useState<AccessToken>()
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => setMaking(true)}>
      New token
    </Button>
  )
  return (
    <>
      <PageHead title="My tokens" about="For scripts and the command line, with your rights or fewer" actions={make} />
      <List<AccessToken>
        name="Tokens"
        operation="GET /v1/admin/tokens"
        columns={[
          {
            title: 'Token',
            show: (token) => (
              <>
                {token.name}
                <span className="cell-sub mono">{token.token_prefix}…</span>
              </>
            ),
          },
          { title: 'May', show: (token) => token.scopes.join(', ') },
          { title: 'Last used', show: (token) => <When at={token.last_used_at} none="never" /> },
          { title: 'Ends', show: (token) => <When at={token.expires_at} none="never" /> },
          { title: 'Status', show: (token) => <Status value={stateOf(token)} /> },
          {
            title: 'Actions',
            show: (token) =>
              stateOf(token) === 'active' && (
                <Button size="compact-sm" variant="default" onClick={() => setEnded(token)}>
                  Revoke
                </Button>
              ),
          },
        ]}
        empty={
          <Empty icon={<KeyRound size={22} />} title="No tokens yet" action={make}>
            A token lets a script or the command line act for you.
          </Empty>
        }
      />
      <Drawer opened={isMaking} onClose={() => setMaking(false)} title="New token">
        <OperationForm
          operation="POST /v1/admin/tokens"
          verb="Create token"
          fixed={{ project_ids: [projectId] }}
          words={{ project_ids: { isHidden: true } }}
          onCancel={() => setMaking(false)}
          onDone={(token) => {
            setMaking(false)
            setMade((token as { token: string }).token)
          }}
        />
      </Drawer>
      <Secret title="The new token" text={made} about="It works in this project." onClose={() => setMade(undefined)} />
      <Confirm
        title="Revoke the token"
        verb="Revoke"
        said={`“${ended?.name}” is revoked.`}
        isOpen={ended !== undefined}
        onClose={() => setEnded(undefined)}
        run={() => call(revokeAccessToken, { path: { tokenId: ended?.id ?? '' } })}
      >
        Whatever uses “{ended?.name}” is refused from now on.
      </Confirm>
    </>
  )
}
