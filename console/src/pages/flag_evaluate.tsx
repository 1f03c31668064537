import { useState } from 'preact/hooks'
import { call } from '../api.ts'
import { Refusal } from '../form.tsx'
import type { PageProps } from '../page_props.ts'
import { TextField } from '../parts/field.tsx'
import { texts } from '../texts.ts'

type Evaluated = {
  readonly value: unknown
  readonly reason: string
  readonly variant: string | null
  readonly bucket: number
  readonly trace: readonly {
    readonly rule_index: number
    readonly holds: boolean
    readonly value: unknown
    readonly conditions: Readonly<Record<string, boolean>>
  }[]
}

/** Which value a user gets of a flag, and why: every condition of every rule. */
export const FlagEvaluate = ({ projectId, id }: PageProps) => {
  const [user, setUser] = useState('')
  const [found, setFound] = useState<Evaluated>()
  const [failure, setFailure] = useState<unknown>()
  const evaluate = async (event: Event) => {
    event.preventDefault()
    setFailure(undefined)
    try {
      const { data } = await call('POST /v1/admin/projects/{projectId}/flags/{idOrKey}/evaluate', {
        path: { projectId, idOrKey: id },
        body: { user_id: user },
      })
      setFound(data as Evaluated)
    } catch (reason) {
      setFound(undefined)
      setFailure(reason)
    }
  }
  return (
    <>
      <h1>{texts.flagEvaluate}</h1>
      <form onSubmit={evaluate} aria-label={texts.flagEvaluate}>
        <TextField label={texts.userId} value={user} onValue={setUser} isRequired />
        <button type="submit">{texts.evaluate}</button>
      </form>
      <Refusal error={failure} />
      {found && (
        <section aria-label={texts.answer}>
          <p role="status">
            {texts.value}: <code>{JSON.stringify(found.value)}</code> ({found.reason}, {texts.bucket} {found.bucket})
          </p>
          <ol>
            {found.trace.map((rule) => (
              <li key={rule.rule_index}>
                {rule.holds ? texts.holds : texts.holdsNot}: <code>{JSON.stringify(rule.value)}</code>
                <ul>
                  {Object.entries(rule.conditions).map(([name, holds]) => (
                    <li key={name}>
                      {name}: {holds ? texts.yes : texts.no}
                    </li>
                  ))}
                </ul>
              </li>
            ))}
          </ol>
        </section>
      )}
    </>
  )
}
