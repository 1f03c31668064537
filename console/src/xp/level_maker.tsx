import { Button, NumberInput, Stack, Text } from '@mantine/core'
import { Sparkles } from 'lucide-react'
import { useState } from 'react'
import { Card } from '../parts/page.tsx'
import { count, counted } from '../parts/states.tsx'
import type { Level } from './level_data.ts'

/** A table of many levels in one step, by a curve. */
export const Generate = ({ onMade }: { onMade: (levels: readonly Level[]) => void }) => {
  const [size, setSize] = useState(20)
  const [base, setBase] = useState(100)
  const [exponent, setExponent] = useState(1.5)
  const made = Array.from({ length: size }, (_, n) => Math.round(base * n ** exponent))
  return (
    <Card title="Make a table">
      <Stack gap="sm">
        <NumberInput label="Levels" min={2} max={500} value={size} onChange={(next) => setSize(Number(next) || 2)} />
        <NumberInput
          label="XP of the second level"
          min={1}
          value={base}
          onChange={(next) => setBase(Number(next) || 1)}
        />
        <NumberInput
          label="Steepness"
          description="1 makes all levels equally far apart"
          min={0.5}
          max={5}
          step={0.1}
          value={exponent}
          onChange={(next) => setExponent(Number(next) || 1)}
        />
        <Text size="sm" c="dimmed">
          The last level needs {count(made.at(-1))} XP.
        </Text>
        <Button
          variant="default"
          leftSection={<Sparkles size={15} />}
          onClick={() =>
            onMade(
              made.map((xp_required, n) => ({ level: n + 1, xp_required, name: null, icon_url: null, reward: null })),
            )
          }
        >
          Make {counted(size, 'level')}
        </Button>
      </Stack>
    </Card>
  )
}
