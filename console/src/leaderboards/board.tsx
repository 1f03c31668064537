import { Badge, Group, Stack } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Row } from '../api.ts'
import { factsOf } from '../parts/facts.tsx'
import { rewardWords } from '../parts/form/reward.ts'
import { Card, Facts, useAddress, Views } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Anomalies } from './anomalies.tsx'
import { sourceWords, useRuns } from './data.ts'
import { Ranks } from './ranks.tsx'
import { Runs } from './runs.tsx'
import { words } from './words.ts'

const Settings = ({ row }: { row: Row }) => {
  const { rewards, source: _, ...rest } = row
  const prizes = rewards as readonly { from_rank: number; to_rank: number; reward: unknown }[]
  return (
    <div className="split">
      <Card title="Settings">
        <Facts
          facts={[
            ['Scores from', sourceWords(row)],
            ...factsOf(rest, (name) => ({ ...words[name], choices: { ...words[name]?.choices } })),
          ]}
        />
      </Card>
      <Card title="Rewards at the end of a run">
        {prizes.length === 0 ? (
          <Empty title="No rewards">“Edit” adds some, by rank.</Empty>
        ) : (
          <Facts
            facts={prizes.map(({ from_rank, to_rank, reward }) => [
              from_rank === to_rank ? `Rank ${from_rank}` : `Rank ${from_rank} to ${to_rank}`,
              rewardWords(reward),
            ])}
          />
        )}
      </Card>
    </div>
  )
}

const views = [
  ['now', 'Now'],
  ['runs', 'Runs'],
  ['settings', 'Settings'],
  ['anomalies', 'Anomalies'],
] as const
const shown: Readonly<Record<string, (props: { row: Row }) => ReactNode>> = {
  now: Ranks,
  runs: Runs,
  settings: Settings,
  anomalies: Anomalies,
}

/** A board in its four views. */
export const Board = ({ row }: { row: Row }) => {
  const [{ view = 'now' }] = useAddress<'view'>()
  const { data: runs } = useRuns(row)
  const open = runs?.find(({ status }) => status === 'open')
  const View = shown[view] ?? Ranks
  return (
    <Stack gap={0}>
      <Group gap="xs" mb="sm">
        <Badge variant="default">{sourceWords(row)}</Badge>
        <Badge variant="default">{words['scoring']?.choices?.[String(row['scoring'])]}</Badge>
        {open?.ends_at && (
          <span>
            This run ends <When at={open.ends_at} />
          </span>
        )}
      </Group>
      <Views label="Leaderboard" views={views} />
      <View row={row} />
    </Stack>
  )
}
