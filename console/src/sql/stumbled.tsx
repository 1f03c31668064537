import { Alert, Button, Text } from '@mantine/core'
import { CircleAlert } from 'lucide-react'
import type { Problem } from './data.ts'

/** Line and column of a position that counts characters from 1. */
const placeOf = (text: string, position: number): string => {
  const before = [...text].slice(0, position - 1).join('')
  const line = before.split('\n').length
  return `line ${line}, column ${[...(before.split('\n').at(-1) ?? '')].length + 1}`
}

/** What Postgres says of a query that it does not take, with a way to the place. */
export const Stumbled = ({
  problem,
  text,
  onGoTo,
}: {
  problem: Problem
  text: string
  onGoTo: (position: number) => void
}) => {
  const { position } = problem
  return (
    <Alert color="red" icon={<CircleAlert size={18} />} title={problem.message} role="alert" mt="sm">
      {problem.detail && <Text size="sm">{problem.detail}</Text>}
      {problem.hint && <Text size="sm">{problem.hint}</Text>}
      {position !== null && (
        <Button size="compact-sm" variant="default" mt={6} onClick={() => onGoTo(position)}>
          Go to {placeOf(text, position)}
        </Button>
      )}
    </Alert>
  )
}
