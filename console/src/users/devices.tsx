import { Smartphone, Timer } from 'lucide-react'
import type { Row } from '../api.ts'
import { ListCard } from '../parts/list_card.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useUser } from './one_user.ts'
import { type Session, sessionColumns } from './session_columns.tsx'

type OwnSession = Session & {
  readonly platform: string | null
  readonly device_model: string | null
  readonly app_version: string | null
}

const user = 'GET /v1/admin/projects/{projectId}/users/{userId}'
const platforms: Readonly<Record<string, string>> = { ios: 'iOS', android: 'Android' }
const platformOf = (platform: unknown) => platforms[String(platform)] ?? String(platform ?? '')

/** The devices of a user that take push messages, and the sessions in the app. */
export const Devices = () => {
  const { path } = useUser()
  const one = { userId: path.userId }
  return (
    <div className="column">
      <ListCard<Row>
        title="Devices for push"
        operation={`${user}/devices`}
        path={one}
        columns={[
          {
            title: 'Device',
            show: (row) => (
              <>
                {platformOf(row['platform'])}
                <span className="cell-sub mono">…{String(row['token_end'])}</span>
              </>
            ),
          },
          {
            title: 'State',
            show: (row) => (
              <Status
                value={row['is_active'] ? 'takes messages' : 'off'}
                meaning={row['is_active'] ? 'good' : 'none'}
              />
            ),
          },
          { title: 'Since', show: (row) => <When at={row['created_at'] as string} /> },
        ]}
        empty={
          <Empty icon={<Smartphone size={22} />} title="No device takes push messages">
            The app registered none, or the user signed out.
          </Empty>
        }
      />
      <ListCard<OwnSession>
        title="Sessions in the app"
        operation={`${user}/sessions`}
        path={one}
        columns={sessionColumns<OwnSession>([
          {
            title: 'Device',
            show: ({ platform, device_model, app_version }) => (
              <>
                {[platformOf(platform), device_model].filter(Boolean).join(', ') || '—'}
                {app_version !== null && <span className="cell-sub">version {app_version}</span>}
              </>
            ),
          },
        ])}
        empty={<Empty icon={<Timer size={22} />} title="The app told of no session yet" />}
      />
    </div>
  )
}
