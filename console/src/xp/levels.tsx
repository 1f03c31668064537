import { Button, Group, Skeleton, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { Bars } from '../parts/chart.tsx'
import { rewardWords } from '../parts/form/reward.ts'
import { PageHead } from '../parts/page.tsx'
import { count, Failure } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { type Level, operation } from './level_data.ts'
import { LevelEditor } from './level_editor.tsx'
import { useXpStats } from './rules.tsx'

/** From how much XP on which level is reached, and how many users are there. */
export const Page = () => {
  const [isEditing, setEditing] = useState(false)
  const { data: levels, error, refetch } = useAnswer<readonly Level[]>(`GET ${operation}`)
  const stats = useXpStats()
  const usersAt = new Map(stats.data?.level_distribution.map(({ level, users }) => [level, users]))
  return (
    <>
      <PageHead
        title="Levels"
        about="From how much XP on users reach which level"
        actions={!isEditing && levels && <Button onClick={() => setEditing(true)}>Edit levels</Button>}
      />
      {error ? (
        <Failure error={error} onRetry={refetch} />
      ) : !levels ? (
        <Skeleton h={320} />
      ) : isEditing ? (
        <LevelEditor before={levels} onClose={() => setEditing(false)} />
      ) : (
        <Stack gap="md">
          <Bars
            title="Users by level"
            of="Users"
            by="Level"
            bars={stats.data && levels.map(({ level }) => ({ label: String(level), value: usersAt.get(level) ?? 0 }))}
            error={stats.error}
            onRetry={stats.refetch}
          />
          <div className="card" data-flush>
            <table className="table" data-stack aria-label="Levels">
              <thead>
                <tr>
                  <th scope="col">Level</th>
                  <th scope="col" data-number>
                    XP needed
                  </th>
                  <th scope="col" data-number>
                    Users
                  </th>
                  <th scope="col">Reward</th>
                </tr>
              </thead>
              <tbody>
                {levels.map(({ level, xp_required, name, reward }) => (
                  <tr key={level}>
                    <td>{name ? `${level}: ${name}` : level}</td>
                    <td data-number data-label="XP needed">
                      {count(xp_required)}
                    </td>
                    <td data-number data-label="Users">
                      {count(usersAt.get(level) ?? 0)}
                    </td>
                    <td data-label="Reward">{rewardWords(reward) ?? '—'}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {levels.length === 1 && (
            <Group>
              <Text size="sm" c="dimmed">
                There is one level. “Edit levels” makes a table of many in one step.
              </Text>
            </Group>
          )}
        </Stack>
      )}
    </>
  )
}
