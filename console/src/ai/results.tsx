import { Text } from '@mantine/core'
import type { EvaluateAiPromptResult } from '../../../sdk/src/generated/schemas.ts'
import { Card } from '../parts/page.tsx'
import { counted } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { type Case, expectedOf, outcomeOf } from './cases.ts'
import { dollars } from './data.ts'

/** What came of an evaluation: a row for each run of each case, with what the model answered. */
export const Results = ({ result, cases }: { result: EvaluateAiPromptResult; cases: readonly Case[] }) => {
  const { passed, of, version } = outcomeOf(result)
  const rows = result.cases.flatMap(({ runs }, place) =>
    runs.map((run, n) => ({ ...run, place, key: `${place} ${n}`, nth: runs.length > 1 ? `, run ${n + 1}` : '' })),
  )
  return (
    <Card
      title="Results"
      flush
      actions={<Status value={`${passed} of ${of} passed`} meaning={passed === of ? 'good' : 'bad'} />}
    >
      <div className="scroll-x">
        <table className="table" data-stack aria-label="Results">
          <thead>
            <tr>
              <th scope="col">Case</th>
              <th scope="col">Result</th>
              <th scope="col">Answer</th>
              <th scope="col" data-number>
                Cost
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ key, place, nth, passed, output, error, cost_usd }) => (
              <tr key={key}>
                <td>
                  {`Case ${place + 1}${nth}`}
                  {cases[place] && <span className="cell-sub">{expectedOf(cases[place])}</span>}
                </td>
                <td data-label="Result">
                  <Status value={passed ? 'passed' : 'failed'} meaning={passed ? 'good' : 'bad'} />
                </td>
                <td data-label="Answer">
                  {error ? (
                    <Text size="sm" c="var(--bad)">
                      {error.message}
                    </Text>
                  ) : (
                    <div className="talk-text">{output || 'an empty answer'}</div>
                  )}
                </td>
                <td data-number data-label="Cost">
                  {dollars(cost_usd)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Text size="sm" c="dimmed" mt="xs" className="inside-foot" role="status">
        {version === null ? 'No call reached the model' : `Version ${version}`}, {counted(of, 'call')},{' '}
        {dollars(result.cost_usd)}
      </Text>
    </Card>
  )
}
