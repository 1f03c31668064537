import { Smartphone, Timer } from 'lucide-react'
import type { Row } from '../api.ts'
import { List } from '../parts/list.tsx'
import { Card } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useUser } from './one_user.ts'
import { lasting } from './sessions.tsx'

const user = 'GET /v1/admin/projects/{projectId}/users/{userId}'
const platforms: Readonly<Record<string, string>> = { ios: 'iOS', android: 'Android' }
const platformOf = (row: Row) => platforms[String(row['platform'])] ?? String(row['platform'] ?? '')

/** The devices of a user that take push messages, and the sessions in the app. */
export const Devices = () => {
  const { path } = useUser()
  const one = { userId: path.userId }
  return (
    <div className="column">
      <Card title="Devices for push" flush>
        <List<Row>
          name="Devices for push"
          isInside
          operation={`${user}/devices`}
          path={one}
          columns={[
            {
              title: 'Device',
              show: (row) => (
                <>
                  {platformOf(row)}
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
      </Card>
      <Card title="Sessions in the app" flush>
        <List<Row>
          name="Sessions in the app"
          isInside
          operation={`${user}/sessions`}
          path={one}
          columns={[
            { title: 'Began', show: (row) => <When at={row['started_at'] as string} /> },
            {
              title: 'Device',
              show: (row) => (
                <>
                  {[platformOf(row), row['device_model']].filter(Boolean).join(', ') || '—'}
                  {row['app_version'] !== null && (
                    <span className="cell-sub">version {String(row['app_version'])}</span>
                  )}
                </>
              ),
            },
            { title: 'Length', isNumber: true, show: (row) => lasting(row['duration_seconds'] as number) },
            {
              title: 'State',
              show: (row) => <Status value={row['ended_at'] ? 'ended' : 'open'} />,
            },
          ]}
          empty={<Empty icon={<Timer size={22} />} title="The app told of no session yet" />}
        />
      </Card>
    </div>
  )
}
